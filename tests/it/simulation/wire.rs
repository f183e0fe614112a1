//! The connection of one process to the server: applies the faults, and passes what reached the server to the history.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kopf::testing::EXAMPLES;
use kopf_apiserver::ApiServer;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time};
use tower::Service as _;

use super::{
    costs,
    faults::{Faults, Kind, Place},
    history::History,
    levels::Levels,
    lines,
    mutants::{Mutant, Sent},
    operators::Ends,
};

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "ns1";

/// Maximum delay of a request or a response.
const DELAY_MAX_MS: u64 = 4000;

pub(super) type LineBody = UnsyncBoxBody<Bytes, io::Error>;

/// A connection. Clones share it.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) server: ApiServer,
    pub(super) faults: Faults,
    pub(super) history: History,
    /// The number of the process.
    pub(super) process: u64,
    /// Precedes the names of places: the order in which watches wake up is random, and must not decide about faults.
    pub(super) prefix: &'static str,
    /// Gets a report when the process must be killed.
    pub(super) ends: Ends,
    /// Whether connections are refused.
    pub(super) is_down: Arc<AtomicBool>,
    /// Whether requests of this process get lost.
    pub(super) is_cut_off: Arc<AtomicBool>,
    /// The version of the last list of objects that the process has received; zero if there was none.
    pub(super) listed: Arc<AtomicU64>,
    /// Whether one of the servers behind the address lags behind.
    pub(super) is_lagging: bool,
    /// The history of reconcile handlers and schedules, if there are any.
    pub(super) levels: Option<Levels>,
    /// A bug that the operator has.
    pub(super) mutant: Option<Mutant>,
    /// Requests that a bug repeats.
    pub(super) later: Arc<Mutex<JoinSet<()>>>,
}

/// The target of a request.
struct Target {
    place: Place,
    /// The name of the place in random numbers.
    name: String,
    /// The name of the object that it changes.
    object: Option<String>,
    /// The handlers whose results or records it writes.
    handlers: Vec<&'static str>,
}

impl Wire {
    pub(super) fn client(&self) -> kube::Client {
        let wire = self.clone();
        let send = tower::service_fn(move |request| wire.clone().send(request));
        kube::Client::new(send, NAMESPACE)
    }

    async fn send(self, request: Request<Body>) -> Result<Response<LineBody>, io::Error> {
        self.history.count_request(self.process);
        if self.is_down.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if self.is_cut_off.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let mut target = Target::of(self.prefix, &request);
        if self.levels.is_some() {
            target.place =
                Place::of_levels(request.method(), request.uri()).unwrap_or(target.place);
        }
        if let Some(mutant) = self.mutant {
            return self.send_mutated(mutant, request, &target).await;
        }
        let request = target.read(request).await?;
        let Some((kind, mut random)) = self.faults.decide(target.place, &target.name) else {
            return self.pass(request, &target).await;
        };
        self.history.note(format!("fault {kind:?} at {}", target.name));
        let delay = Duration::from_millis(random.u64(10..DELAY_MAX_MS));
        match kind {
            Kind::LostRequest => return std::future::pending().await,
            Kind::BrokenBefore => return Err(io::ErrorKind::ConnectionReset.into()),
            Kind::LateRequest => time::sleep(delay).await,
            Kind::DeathBefore => return self.die().await,
            Kind::StaleList => {
                let request = self.stale(request, &target, random.u64(1..20)).await;
                return self.pass(request, &target).await;
            }
            _ => {}
        }
        if let Some(refusal) = refusal(kind, random.bool()) {
            let is_final =
                matches!(kind, Kind::Conflict | Kind::Outdated | Kind::Invalid | Kind::Forbidden);
            if let Some(name) = target.object.as_ref().filter(|_| is_final) {
                self.history.reject(name, &target.handlers);
            }
            return Ok(refusal);
        }
        let response = self.pass(request, &target).await;
        match kind {
            Kind::LostAnswer => std::future::pending().await,
            Kind::BrokenAfter => Err(io::ErrorKind::ConnectionReset.into()),
            Kind::DeathAfter => self.die().await,
            Kind::LateAnswer => {
                time::sleep(delay).await;
                response
            }
            _ => response,
        }
    }

    /// Sends a request as an operator with a bug does; without other faults, so that only the bug can be found.
    async fn send_mutated(
        &self,
        mutant: Mutant,
        request: Request<Body>,
        target: &Target,
    ) -> Result<Response<LineBody>, io::Error> {
        let is_patch = matches!(target.place, Place::Merge | Place::Json);
        if !is_patch || !self.faults.is_on() {
            return self.pass(request, target).await;
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let again = || Request::from_parts(parts.clone(), Body::from(body.clone()));
        let mut random = self.faults.chance(&target.name);
        match mutant.sent(parts.uri.path(), &body, &mut random) {
            Sent::Once => self.pass(again(), target).await,
            Sent::Never => {
                self.history.note(format!("{mutant:?} at {}", target.name));
                let path = parts.uri.path();
                let path = path.strip_suffix("/status").unwrap_or(path);
                let request = Request::get(path).body(Body::empty()).expect("a request");
                self.pass(request, target).await
            }
            Sent::Twice(pause) => {
                let response = self.pass(again(), target).await;
                let (wire, later) = (self.clone(), again());
                self.later.lock().spawn(async move {
                    time::sleep(pause).await;
                    wire.history.note(format!("{mutant:?} once more"));
                    let target = Target::of(wire.prefix, &later);
                    drop(wire.pass(later, &target).await);
                });
                response
            }
        }
    }

    async fn die<T>(&self) -> T {
        self.ends.push(self.process, "dies");
        std::future::pending().await
    }

    /// Lets the server respond.
    async fn pass(
        &self,
        request: Request<Body>,
        target: &Target,
    ) -> Result<Response<LineBody>, io::Error> {
        let look = || {
            let name = target.object.as_ref()?;
            self.server.get(EXAMPLES, NAMESPACE, name)
        };
        let levels = self.levels.as_ref();
        let look_at_levels = || levels.map(|it| it.look(target.object.as_ref(), EXAMPLES));
        let (before, levels_before) = (look(), look_at_levels());
        let Ok(response) = self.server.clone().call(request).await;
        if target.is_list_of_objects() && response.status().is_success() {
            self.listed.store(self.server.revision(), Ordering::Relaxed);
        }
        if let Some(name) = &target.object {
            if matches!(response.status().as_u16(), 403 | 409 | 422) {
                self.history.reject(name, &target.handlers);
            }
            let after = look();
            if levels.is_none() {
                self.history.observe(before.as_ref(), after.as_ref());
            }
            if before != after {
                self.history.write(self.process, self.server.revision());
            }
        }
        if let Some(((levels, before), after)) = levels.zip(levels_before).zip(look_at_levels()) {
            levels.check(&before, &after);
        }
        Ok(response.map(|body| {
            if target.place == Place::Watch {
                lines::faulty(body, &target.name, self)
            } else {
                let body = body.map_err(|never| match never {});
                match self.mutant {
                    Some(mutant) => mutated(mutant, body).boxed_unsync(),
                    None => body.boxed_unsync(),
                }
            }
        }))
    }

    /// Requests the state of this many changes ago, or of fewer. Servers read lists without a version from etcd, so the operator takes a
    /// list of objects as current. It only protects what it has stored itself. So the list is not the first one of the process, and not
    /// older than the previous one, nor than what another process has stored. It also shows the objects that exist: neither one that is
    /// gone, nor none in place of one that was created since.
    async fn stale(&self, request: Request<Body>, target: &Target, changes: u64) -> Request<Body> {
        let last = self.server.revision();
        let oldest = last.saturating_sub(changes).max(1);
        if !target.is_list_of_objects() {
            return exact(request.uri(), oldest);
        }
        let listed = self.listed.load(Ordering::Relaxed);
        if listed > 0 {
            let oldest = oldest.max(listed).max(self.history.written_by_others(self.process));
            let present = self.uids(request.uri(), last).await;
            for version in oldest..last {
                if present.is_some() && self.uids(request.uri(), version).await == present {
                    return exact(request.uri(), version);
                }
            }
        }
        request
    }

    /// Returns the uids in a list of this version; `None` if the server no longer has it.
    async fn uids(&self, uri: &Uri, version: u64) -> Option<BTreeSet<String>> {
        let Ok(response) = self.server.clone().call(exact(uri, version)).await;
        let is_there = response.status().is_success();
        let Ok(body) = response.into_body().collect().await;
        let list: Value = serde_json::from_slice(&body.to_bytes()).ok()?;
        let uid = |it: &Value| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        is_there.then(|| list["items"].as_array().into_iter().flatten().map(uid).collect())
    }
}

/// Returns the request for a list of exactly this version.
fn exact(uri: &Uri, version: u64) -> Request<Body> {
    let path = uri.path();
    let query = uri.query().map(|it| format!("&{it}")).unwrap_or_default();
    let uri = format!("{path}?resourceVersionMatch=Exact&resourceVersion={version}{query}");
    Request::get(uri).body(Body::empty()).expect("a request")
}

/// Returns the body as an operator with a bug reads it.
fn mutated(
    mutant: Mutant,
    body: impl hyper::body::Body<Data = Bytes, Error = io::Error>,
) -> impl hyper::body::Body<Data = Bytes, Error = io::Error> {
    body.map_frame(move |frame| frame.map_data(|it| mutant.read(&it)))
}

impl Target {
    fn of(prefix: &str, request: &Request<Body>) -> Self {
        let path = request.uri().path();
        let mut parts = path.rsplit('/');
        let last = parts.next().unwrap_or_default();
        let of_examples = path.contains("/kopfexamples");
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|it| it.as_bytes().starts_with(b"application/json-patch"));
        let method = request.method().as_str();
        let collection = matches!(last, "kopfexamples" | "customresourcedefinitions");
        let query = request.uri().query().unwrap_or_default();
        let place = match method {
            "PATCH" if of_examples && is_json => Place::Json,
            "PATCH" if of_examples => Place::Merge,
            "GET" if collection && query.contains("watch=true") => Place::Watch,
            "GET" if collection => Place::List,
            _ => Place::Other,
        };
        let is_object = of_examples && !collection;
        let object = match last {
            "status" => parts.next().unwrap_or_default(),
            last => last,
        };
        let object = (is_object && method != "GET").then(|| object.to_owned());
        let what = if is_object {
            path.rsplit_once("kopfexamples/").map_or(path, |(_, it)| it)
        } else if collection {
            last
        } else {
            path
        };
        let verb = if place == Place::Watch { "WATCH" } else { method };
        let handlers = Vec::new();
        Target { place, name: format!("{prefix}{verb} {what}"), object, handlers }
    }

    /// Finds the handlers that a request concerns. Returns the same request.
    async fn read(&mut self, request: Request<Body>) -> Result<Request<Body>, io::Error> {
        if !matches!(self.place, Place::Merge | Place::Json) {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        self.handlers = costs::written(&text);
        Ok(Request::from_parts(parts, body.into()))
    }

    fn is_list_of_objects(&self) -> bool {
        self.place == Place::List && self.name.ends_with("kopfexamples")
    }
}

/// Returns the response of a fault that has one.
fn refusal(kind: Kind, has_pause: bool) -> Option<Response<LineBody>> {
    let (code, reason, message) = match kind {
        Kind::Conflict => (409, "Conflict", "the object has been modified"),
        Kind::Outdated => {
            (422, "Invalid", "the server rejected our request due to an error in our request")
        }
        Kind::Invalid => (422, "Invalid", "spec.x: Invalid value"),
        Kind::Forbidden => (403, "Forbidden", "not allowed"),
        Kind::TooMany => (429, "TooManyRequests", "too many requests"),
        Kind::Internal => (500, "InternalError", "an error on the server"),
        Kind::Unavailable => (503, "ServiceUnavailable", "the server is not ready"),
        Kind::NoRoute => (404, "NotFound", "the server could not find the requested resource"),
        Kind::Expired => (410, "Expired", "too old resource version"),
        _ => return None,
    };
    let body = status(code, reason, message).to_string();
    let mut response = Response::builder().status(code);
    if has_pause && matches!(kind, Kind::TooMany | Kind::Unavailable) {
        response = response.header(header::RETRY_AFTER, "2");
    }
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    Some(response.body(body).expect("a response"))
}

/// Returns a `Status` object.
pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}
