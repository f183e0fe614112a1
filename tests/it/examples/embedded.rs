//! An example on the embedded server, with its controllers, on virtual time.

use std::{fmt::Write as _, process::ExitStatus, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kopf::{
    logic::registry::Registry,
    ports::Clock,
    reactor::{self, Operator},
    scripting::{Modules, Placement, ScriptHost, Source, Terms},
};
use kopf_apiserver::{
    ApiServer, ResourceDef,
    controllers::{self, Controllers},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    runtime::Handle,
    task::{JoinSet, LocalSet},
    time,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use super::{Part, Place, documents};
use crate::e2e::operator::{Ended, file};

/// The wall clock at virtual time zero.
const BASE: &str = "2026-01-01T00:00:00Z";
/// The namespace of the examples.
const NAMESPACE: &str = "default";
const POLL: Duration = Duration::from_millis(100);
/// Ten minutes: they take no time.
const PATIENCE: u32 = 6000;

/// A server, and an operator that calls it directly.
pub(super) struct Embedded {
    server: ApiServer,
    clock: Clock,
    sources: Vec<Source>,
    log: Log,
    operator: Running,
    /// What runs beside the operator.
    _controllers: JoinSet<()>,
}

struct Running {
    stop: CancellationToken,
    task: JoinSet<Result<(), String>>,
}

impl Embedded {
    /// Plays an example from its start to its end.
    pub(super) fn play(part: Part, language: &str, course: impl AsyncFnOnce(Embedded)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            let clock = Clock::starting_at(BASE.parse().expect("a timestamp"));
            let log = Log { clock, runtime: Handle::current(), lines: Arc::default() };
            let logging = tracing_subscriber::registry().with(log.clone());
            let _logging = tracing::dispatcher::set_default(&Dispatch::new(logging));
            course(Embedded::start(part, language, clock, log).await).await;
        });
    }

    async fn start(part: Part, language: &str, clock: Clock, log: Log) -> Self {
        let stamp = move || clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let server = ApiServer::builder().cluster(true).bookmarks(None).clock(stamp).build();
        for path in definitions(part) {
            for definition in documents(&path) {
                server
                    .create("customresourcedefinitions.apiextensions.k8s.io", definition)
                    .unwrap_or_else(|it| panic!("{path}: {it:?}"));
            }
        }
        let mut beside = JoinSet::new();
        beside.spawn(controllers::run(server.clone(), Controllers::ALL));
        let script = format!("examples/{}/handlers.{language}", part.directory);
        let sources = ["tests/e2e/quick.lua", &script].map(source).to_vec();
        let operator = raise(&server, clock, &sources).await;
        Embedded { server, clock, sources, log, operator, _controllers: beside }
    }

    /// The place of an object or of a collection in the API.
    fn url(resource: &ResourceDef, name: &str) -> String {
        let version = resource.versions.first().expect("a version");
        let mut url = match resource.group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
        if resource.namespaced {
            write!(url, "/namespaces/{namespace}").expect("a string takes all");
        }
        write!(url, "/{}/{name}", resource.plural).expect("a string takes all");
        url.trim_end_matches('/').to_owned()
    }

    fn resource(&self, wanted: impl Fn(&ResourceDef) -> bool) -> ResourceDef {
        self.server.resources().into_iter().find(wanted).expect("the server has the resource")
    }

    fn named(&self, resource: &str) -> ResourceDef {
        self.resource(|it| it.qualified() == resource)
    }

    /// The answer to a request; `Err` with the reason and the message of a refusal.
    async fn request(
        &self,
        method: &str,
        url: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let body = body.map_or_else(Bytes::new, |it| it.to_string().into());
        let request = http::Request::builder()
            .method(method)
            .uri(url)
            .header(http::header::CONTENT_TYPE, kind)
            .body(Full::new(body))
            .expect("a request");
        let Ok(answer) = self.server.clone().oneshot(request).await;
        let status = answer.status();
        let Ok(body) = answer.into_body().collect().await;
        let body: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        if status.is_success() {
            Ok(body)
        } else {
            Err(format!("({}) {}", body["reason"], body["message"]))
        }
    }
}

impl Place for Embedded {
    const IS_REAL: bool = false;

    fn namespace(&self) -> &'static str {
        NAMESPACE
    }

    async fn until_says_times(&self, text: &str, times: usize) {
        for _ in 0..PATIENCE {
            if self.log.text().lines().filter(|it| it.contains(text)).count() >= times {
                return;
            }
            self.pause().await;
        }
        panic!("waited in vain for {times}× {text}\n{}", self.log.text());
    }

    async fn until_prints(&self, _text: &str) {}

    async fn create(&self, object: &Value) {
        let resource = self.resource(|it| {
            let api = match it.group.as_str() {
                "" => it.versions.clone(),
                group => it.versions.iter().map(|it| format!("{group}/{it}")).collect(),
            };
            object["kind"] == it.kind.as_str()
                && object["apiVersion"].as_str().is_some_and(|it| api.iter().any(|api| api == it))
        });
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let url = Self::url(&resource, &format!("{namespace}/"));
        let made = self.request("POST", &url, "application/json", Some(object)).await;
        made.unwrap_or_else(|it| panic!("{object} is refused: {it}"));
    }

    async fn get(&self, resource: &str, name: &str) -> Result<Value, String> {
        let url = Self::url(&self.named(resource), name);
        self.request("GET", &url, "application/json", None).await
    }

    async fn list(&self, resource: &str) -> Vec<Value> {
        let url = Self::url(&self.named(resource), "");
        let list = self.request("GET", &url, "application/json", None).await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn patch(&self, resource: &str, name: &str, patch: &Value) {
        let mut url = Self::url(&self.named(resource), name);
        if patch.get("status").is_some() {
            url.push_str("/status");
        }
        let patched = self.request("PATCH", &url, "application/merge-patch+json", Some(patch));
        patched.await.unwrap_or_else(|it| panic!("{resource} {name}: {patch} is refused: {it}"));
    }

    async fn delete(&self, resource: &str, name: &str) {
        let url = Self::url(&self.named(resource), name);
        let deleted = self.request("DELETE", &url, "application/json", None).await;
        deleted.unwrap_or_else(|it| panic!("{resource} {name} cannot be deleted: {it}"));
    }

    async fn restart(&mut self) -> Ended {
        let ended = lower(&mut self.operator, &self.log).await;
        self.log.lines().clear();
        self.operator = raise(&self.server, self.clock, &self.sources).await;
        ended
    }

    async fn stop(mut self) -> Ended {
        lower(&mut self.operator, &self.log).await
    }

    async fn finish_namespace(&self, _name: &str) {}

    async fn finish_job(&self, _name: &str) {}

    async fn until_job_deleted(&self, name: &str) {
        self.until_gone("jobs.batch", name).await;
    }

    async fn create_or_leave(&self, object: &Value) {
        self.create(object).await;
    }

    async fn pause(&self) {
        time::sleep(POLL).await;
    }

    fn patience(&self) -> u32 {
        PATIENCE
    }
}

/// What the server knows before the operator starts.
fn definitions(part: Part) -> Vec<String> {
    let own = format!("examples/{}/crd.yaml", part.directory);
    let all = ["examples/crd.yaml".to_owned(), own];
    all.into_iter().filter(|it| file(it).exists()).collect()
}

fn source(path: &str) -> Source {
    let path = file(path);
    Source {
        name: path.file_name().unwrap_or_default().display().to_string(),
        modules: Modules::beside(&path),
        text: std::fs::read_to_string(&path).expect("a script"),
    }
}

async fn raise(server: &ApiServer, clock: Clock, sources: &[Source]) -> Running {
    let terms = Terms { clock, ..Placement::CurrentRuntime.into() };
    let loaded = ScriptHost::load(sources.to_vec(), terms).await;
    let (scripts, handlers) = loaded.unwrap_or_else(|errors| panic!("{}", errors[0]));
    let registry = Registry::new(handlers).expect("ids are unique");
    let client = kopf::testing::client(server);
    let operator =
        Operator { clock, ..kopf::testing::operator(Arc::new(scripts), registry, client) };
    let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
    let token = stop.clone();
    task.spawn(async move { reactor::run(operator, token).await.map_err(|it| it.to_string()) });
    Running { stop, task }
}

async fn lower(operator: &mut Running, log: &Log) -> Ended {
    operator.stop.cancel();
    while let Some(ended) = operator.task.join_next().await {
        ended.expect("it does not panic").unwrap_or_else(|it| panic!("{it}\n{}", log.text()));
    }
    Ended { status: ExitStatus::default(), output: log.text() }
}

/// The log, in the form of the command line.
#[derive(Clone)]
struct Log {
    clock: Clock,
    /// Scripts log from threads of their own: these get the virtual time through it.
    runtime: Handle,
    lines: Arc<Mutex<String>>,
}

impl Log {
    fn lines(&self) -> parking_lot::MutexGuard<'_, String> {
        self.lines.lock()
    }

    fn text(&self) -> String {
        self.lines().clone()
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with("kopf") {
            return;
        }
        let _entered = self.runtime.enter();
        let mut line = Line::default();
        event.record(&mut line);
        let now = self.clock.now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
        let object = match (line.namespace, line.name) {
            (Some(namespace), Some(name)) => format!("[{namespace}/{name}] "),
            (None, Some(name)) => format!("[{name}] "),
            (_, None) => String::new(),
        };
        let text = format!("[{now}] {:8} {object}{}\n", metadata.level(), line.message);
        self.lines().push_str(&text);
    }
}

/// The fields of an event.
#[derive(Default)]
struct Line {
    message: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "object.name" => self.name = Some(value.to_owned()),
            "object.namespace" => self.namespace = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
