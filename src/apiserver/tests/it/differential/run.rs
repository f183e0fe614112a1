//! Runs a script against a server, and records its responses.

use std::time::Duration;

use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use indexmap::IndexMap;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::{
    mask::Mask,
    script::{RequestScript, RequestStep, Vars, fill_in, fill_in_all},
};

/// The headers that clients use.
const HEADERS: &[&str] = &[
    "allow",
    "cache-control",
    "content-type",
    "location",
    "retry-after",
    "warning",
    "x-content-type-options",
];

/// Time limit of a response or an event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time after which a watch without events counts as silent.
const SILENCE: Duration = Duration::from_secs(3);

/// Clients of the same server.
pub(crate) struct Clients {
    pub(crate) admin: kube::Client,
    /// Sends only the credentials of a step.
    pub(crate) bare: kube::Client,
}

/// A script while it runs.
pub(crate) struct ScriptRun<'a> {
    clients: &'a Clients,
    vars: Vars,
    mask: Mask,
    watches: IndexMap<String, OpenWatch>,
    /// Collections and objects to remove at the end.
    made: Vec<String>,
}

/// The lines of an open watch.
struct OpenWatch {
    body: Body,
    rest: Vec<u8>,
}

/// A response of a server.
struct ServerResponse {
    status: u16,
    headers: HeaderMap,
    /// JSON, the lines of a watch, or a string.
    body: Value,
}

/// The result of a script.
pub(crate) struct Transcript {
    /// One record per step.
    pub(crate) records: Vec<Value>,
    /// Failed steps of the setup, and responses that violate the expectations of a step.
    pub(crate) unexpected: Vec<String>,
}

/// Runs a script. `run` is a word that does not occur on the server.
pub(crate) async fn transcript(clients: &Clients, script: &RequestScript, run: &str) -> Transcript {
    let vars = Vars::from([("run".into(), run.into()), ("ns".into(), format!("ns-{run}"))]);
    let vars = vars.into_iter().chain(script.vars.clone()).collect();
    let mut run = ScriptRun {
        clients,
        vars,
        mask: Mask::new(run),
        watches: IndexMap::new(),
        made: Vec::new(),
    };
    let mut unexpected = Vec::new();
    for step in &script.setup {
        let answer = run.ask(step).await;
        if answer.status >= 300 {
            let title = step.title();
            unexpected.push(format!("setup: {title}: {} {}", answer.status, answer.body));
        }
    }
    let mut records = Vec::new();
    for step in &script.steps {
        records.push(run.step(step, &mut unexpected).await);
    }
    run.clean().await;
    let of_script = |it: String| format!("{}: {it}", script.name);
    Transcript { records, unexpected: unexpected.into_iter().map(of_script).collect() }
}

impl ScriptRun<'_> {
    async fn step(&mut self, step: &RequestStep, unexpected: &mut Vec<String>) -> Value {
        let mut record = Map::new();
        if let Some(claim) = &step.claim {
            record.insert("claim".into(), json!(claim));
        }
        record.insert("request".into(), json!(step.title()));
        if let Some(watch) = &step.read {
            let events = self.read(watch, step.lines).await;
            unexpected.extend(self.unlike(step, 200, &events));
            record.insert("events".into(), self.mask.value(&events));
            return record.into();
        }
        let answer = self.ask(step).await;
        unexpected.extend(self.unlike(step, answer.status, &answer.body));
        record.insert("status".into(), json!(answer.status));
        let mut headers = Map::new();
        for name in HEADERS {
            let values: Vec<_> = answer.headers.get_all(*name).iter().collect();
            let text = values.iter().filter_map(|it| it.to_str().ok()).collect::<Vec<_>>();
            if !text.is_empty() {
                headers.insert((*name).into(), self.mask.text(&text.join(" | ")).into());
            }
        }
        record.insert("headers".into(), headers.into());
        let body = self.mask.value(&answer.body);
        record.insert("body".into(), body);
        record.into()
    }

    /// Returns the violated expectations of a step.
    fn unlike(&self, step: &RequestStep, status: u16, body: &Value) -> Vec<String> {
        let title = fill_in(&step.title(), &self.vars);
        let unlike = step.expect.iter().filter_map(|(pointer, value)| {
            let (found, wanted) =
                (self.part(pointer, status, body), fill_in_all(value, &self.vars));
            (found != wanted).then(|| format!("{title}: {pointer}: {wanted} expected: {found}"))
        });
        unlike.collect()
    }

    /// Returns a part of a response, null if it is missing; `status` is that of HTTP.
    fn part(&self, pointer: &str, status: u16, body: &Value) -> Value {
        match pointer {
            "status" => json!(status),
            pointer => body.pointer(&fill_in(pointer, &self.vars)).cloned().unwrap_or_default(),
        }
    }

    /// Sends the request of a step until the response is as expected.
    async fn ask(&mut self, step: &RequestStep) -> ServerResponse {
        let mut tries = 0;
        let mut answer = loop {
            let answer = self.send(step).await;
            tries += 1;
            let arrived = step.until.iter().all(|(pointer, value)| {
                self.part(pointer, answer.status, &answer.body) == fill_in_all(value, &self.vars)
            });
            if arrived || tries >= 100 {
                break answer;
            }
            sleep(Duration::from_millis(100)).await;
        };
        for (name, pointer) in &step.save {
            let value = answer.body.pointer(pointer);
            let text =
                value.and_then(|it| it.as_str().map_or(Some(it.to_string()), |it| Some(it.into())));
            self.vars.insert(name.clone(), text.unwrap_or_else(|| "missing".into()));
        }
        for (pointer, names) in &step.pick {
            if let Some(Value::Array(items)) = answer.body.pointer_mut(pointer) {
                items.retain(|it| {
                    it["name"].as_str().is_some_and(|it| names.iter().any(|name| name == it))
                });
            }
        }
        if let Some(pointer) = &step.only {
            answer.body = self.part(pointer, answer.status, &answer.body);
        }
        answer
    }

    async fn send(&mut self, step: &RequestStep) -> ServerResponse {
        let prefix = step.body.as_ref().and_then(|it| it.pointer("/metadata/generateName"));
        if let Some(prefix) = prefix.and_then(Value::as_str) {
            self.mask.generates(prefix);
        }
        let request = self.request(step);
        let is_bare = step.token.is_some();
        let client = if is_bare { &self.clients.bare } else { &self.clients.admin };
        let post = request.method() == "POST" && !request.uri().path().ends_with("/binding");
        let path = request.uri().path().to_owned();
        let stream = request.uri().query().is_some_and(|it| it.contains("watch="));
        // Lists from the cache of the real server have no order.
        let cached = request.uri().query().is_some_and(|it| it.contains("resourceVersion="));
        let response = timeout(PATIENCE, client.send(request)).await;
        let response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(problem)) => return ServerResponse::broken(&format!("no answer: {problem}")),
            Err(_) => return ServerResponse::broken("no answer"),
        };
        let (parts, body) = response.into_parts();
        let mut answer = ServerResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: Value::Null,
        };
        if let Some(watch) = &step.open {
            self.watches.insert(watch.clone(), OpenWatch { body, rest: Vec::new() });
            return answer;
        }
        let stream = stream && answer.status == 200;
        answer.body = whole(body, stream).await;
        if cached && let Some(Value::Array(items)) = answer.body.get_mut("items") {
            items.sort_by_key(|it| it.pointer("/metadata/name").map(Value::to_string));
        }
        if post && answer.status == 201 {
            self.made.push(path.clone());
            if let Some(name) = answer.body["metadata"]["name"].as_str() {
                self.made.push(format!("{path}/{name}"));
            }
        }
        answer
    }

    fn request(&self, step: &RequestStep) -> Request<Body> {
        let line = fill_in(step.request.as_deref().unwrap_or_default(), &self.vars);
        let (word, uri) = line.split_once(' ').unwrap_or((&line, "/"));
        let (method, kind) = match word {
            "MERGE" => ("PATCH", Some("application/merge-patch+json")),
            "JSON" => ("PATCH", Some("application/json-patch+json")),
            "STRATEGIC" => ("PATCH", Some("application/strategic-merge-patch+json")),
            "APPLY" => ("PATCH", Some("application/apply-patch+yaml")),
            "GET" | "HEAD" | "OPTIONS" => (word, None),
            other => (other, Some("application/json")),
        };
        let body = match (&step.body, &step.text, &step.fill) {
            (Some(value), _, _) => Some(fill_in_all(value, &self.vars).to_string()),
            (None, Some(text), _) => Some(fill_in(text, &self.vars)),
            (None, None, Some(it)) => Some(fill_in(
                &format!("{}{}{}", it.before, it.unit.repeat(it.times), it.after),
                &self.vars,
            )),
            (None, None, None) => None,
        };
        let mut headers = IndexMap::from([("user-agent", "kubectl/v1.36.3")]);
        headers.insert("accept", "application/json");
        if let Some(kind) = kind.filter(|_| body.is_some()) {
            headers.insert("content-type", kind);
        }
        headers.extend(step.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers.into_iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(name, fill_in(value, &self.vars));
        }
        if let Some(user) = &step.user {
            request = request.header("impersonate-user", fill_in(user, &self.vars));
        }
        if let Some(token) = &step.token {
            let token = fill_in(token, &self.vars);
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = body.map_or_else(Body::empty, |it| Body::from(it.into_bytes()));
        request.body(body).unwrap_or_else(|it| panic!("{line}: {it}"))
    }

    async fn read(&mut self, watch: &str, count: Option<usize>) -> Value {
        let Some(lines) = self.watches.get_mut(watch) else {
            return json!(format!("no watch {watch} is open"));
        };
        let mut events = Vec::new();
        while count.is_none_or(|it| events.len() < it) {
            match timeout(SILENCE, lines.next()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => {
                    events.push(json!("<end>"));
                    break;
                }
                Err(_) => {
                    events.push(json!("<silence>"));
                    break;
                }
            }
        }
        events.into()
    }

    /// Removes what a script has created on a shared server, as far as that works without the controllers of a cluster.
    async fn clean(&mut self) {
        let run = self.vars["run"].clone();
        let made: Vec<String> = self.made.drain(..).rev().filter(|it| it.contains(&run)).collect();
        for path in made {
            let step = RequestStep {
                request: Some(format!("DELETE {path}?gracePeriodSeconds=0")),
                ..RequestStep::default()
            };
            self.send(&step).await;
        }
        let namespace = format!("/api/v1/namespaces/ns-{run}");
        let body = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": format!("ns-{run}") },
        });
        let request = Some(format!("PUT {namespace}/finalize"));
        self.send(&RequestStep { request, body: Some(body), ..RequestStep::default() }).await;
    }
}

impl ServerResponse {
    fn broken(problem: &str) -> Self {
        Self { status: 0, headers: HeaderMap::new(), body: json!(problem) }
    }
}

impl OpenWatch {
    /// Returns the next line; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|it| *it == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(json_or_text(&line));
            }
            let Some(Ok(frame)) = self.body.frame().await else {
                let rest = std::mem::take(&mut self.rest);
                return (!rest.is_empty()).then(|| json_or_text(&rest));
            };
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }
}

async fn whole(body: Body, stream: bool) -> Value {
    let mut lines = OpenWatch { body, rest: Vec::new() };
    if stream {
        let mut events = Vec::new();
        loop {
            match timeout(PATIENCE, lines.next()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => {
                    sort_first(&mut events);
                    return events.into();
                }
                Err(_) => {
                    events.push(json!("<silence>"));
                    return events.into();
                }
            }
        }
    }
    let collected = timeout(PATIENCE, lines.body.collect()).await;
    match collected {
        Ok(Ok(body)) => json_or_text(&body.to_bytes()),
        Ok(Err(_)) | Err(_) => json!("<broken>"),
    }
}

/// Sorts the existing objects at the start of a watch, which have no order.
fn sort_first(events: &mut [Value]) {
    let count = events.iter().take_while(|it| it["type"] == "ADDED").count();
    let name = |it: &Value| it.pointer("/object/metadata/name").map(Value::to_string);
    if let Some(first) = events.get_mut(..count) {
        first.sort_by_key(name);
    }
}

fn json_or_text(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_not_json| String::from_utf8_lossy(bytes).into_owned().into())
}
