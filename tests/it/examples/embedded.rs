//! An example on the embedded server, with its controllers, on virtual time.

use std::{fmt::Write as _, process::ExitStatus, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kopf::{
    scripting::{Modules, Placement, Source},
    testing::{Environment, RunningOperator, capture_log, run_paused},
};
use kopf_apiserver::{
    ApiServer, ResourceDef,
    controllers::{self, Controllers},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{task::JoinSet, time};
use tower::ServiceExt as _;
use tracing::{Level, dispatcher::DefaultGuard};

use super::{Part, Place, documents};
use crate::e2e::operator::{Ended, file};

/// The namespace of the examples.
const NAMESPACE: &str = "default";
const POLL: Duration = Duration::from_millis(100);
/// Ten minutes of virtual time.
const PATIENCE: u32 = 6000;

/// A cluster with controllers, and an operator on it.
pub(super) struct Embedded {
    env: Environment,
    sources: Vec<Source>,
    /// The log, in the form of the command line.
    log: Arc<Mutex<String>>,
    running: Option<RunningOperator>,
    _controllers: JoinSet<()>,
    _capturing: DefaultGuard,
}

impl Embedded {
    /// Runs an example from its start to its end.
    pub(super) fn run(part: Part, language: &str, course: impl AsyncFnOnce(Embedded)) {
        run_paused(async { course(Embedded::start(part, language).await).await });
    }

    async fn start(part: Part, language: &str) -> Self {
        let env = Environment::new(ApiServer::builder().cluster(true).bookmarks(None));
        let log = Arc::<Mutex<String>>::default();
        let capturing = capture(&env, &log);
        for path in definitions(part) {
            env.create_all(documents(&path));
        }
        let mut controllers = JoinSet::new();
        controllers.spawn(controllers::run(env.server.clone(), Controllers::ALL));
        let script = format!("examples/{}/handlers.{language}", part.directory);
        let sources = ["tests/e2e/quick.lua", &script].map(source).to_vec();
        let running = Some(start(&env, &sources).await);
        Embedded { env, sources, log, running, _controllers: controllers, _capturing: capturing }
    }

    /// Returns the path of an object or of a collection.
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

    fn resource(&self, name: &str) -> ResourceDef {
        let mut all = self.env.server.resources().into_iter();
        all.find(|it| it.qualified() == name).expect("the server has the resource")
    }

    fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Ends the operator. Returns its log and output.
    async fn end_operator(&mut self) -> Ended {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        Ended { status: ExitStatus::default(), output: self.log() }
    }

    /// Sends a request. `Err` has the reason and the message of a refusal.
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
        let Ok(answer) = self.env.server.clone().oneshot(request).await;
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
            if self.log().lines().filter(|it| it.contains(text)).count() >= times {
                return;
            }
            self.pause().await;
        }
        panic!("waited in vain for {times}× {text}\n{}", self.log());
    }

    async fn until_prints(&self, _text: &str) {}

    async fn create(&self, object: &Value) {
        let resource = self.resource(&self.env.resource_of(object));
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let url = Self::url(&resource, &format!("{namespace}/"));
        let made = self.request("POST", &url, "application/json", Some(object)).await;
        made.unwrap_or_else(|it| panic!("{object} is refused: {it}"));
    }

    async fn get(&self, resource: &str, name: &str) -> Result<Value, String> {
        let url = Self::url(&self.resource(resource), name);
        self.request("GET", &url, "application/json", None).await
    }

    async fn list(&self, resource: &str) -> Vec<Value> {
        let url = Self::url(&self.resource(resource), "");
        let list = self.request("GET", &url, "application/json", None).await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn patch(&self, resource: &str, name: &str, patch: &Value) {
        let mut url = Self::url(&self.resource(resource), name);
        if patch.get("status").is_some() {
            url.push_str("/status");
        }
        let patched = self.request("PATCH", &url, "application/merge-patch+json", Some(patch));
        patched.await.unwrap_or_else(|it| panic!("{resource} {name}: {patch} is refused: {it}"));
    }

    async fn delete(&self, resource: &str, name: &str) {
        let url = Self::url(&self.resource(resource), name);
        let deleted = self.request("DELETE", &url, "application/json", None).await;
        deleted.unwrap_or_else(|it| panic!("{resource} {name} cannot be deleted: {it}"));
    }

    async fn restart(&mut self) -> Ended {
        let ended = self.end_operator().await;
        self.log.lock().clear();
        self.running = Some(start(&self.env, &self.sources).await);
        ended
    }

    async fn stop(mut self) -> Ended {
        self.end_operator().await
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

/// Returns the CRDs that the server has before the operator starts.
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

async fn start(env: &Environment, sources: &[Source]) -> RunningOperator {
    let (scripts, handlers) = env.load(sources.to_vec(), Placement::CurrentRuntime).await;
    RunningOperator::start(env.operator(scripts, handlers))
}

/// Writes the log as the command line does, while the guard lives.
fn capture(env: &Environment, log: &Arc<Mutex<String>>) -> DefaultGuard {
    let (clock, log) = (env.clock, Arc::clone(log));
    capture_log("kopf", Level::TRACE, move |line| {
        let now = clock.now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
        let object = match (line.field("object.namespace"), line.field("object.name")) {
            (Some(namespace), Some(name)) => format!("[{namespace}/{name}] "),
            (None, Some(name)) => format!("[{name}] "),
            (_, None) => String::new(),
        };
        let mut log = log.lock();
        writeln!(log, "[{now}] {:8} {object}{}", line.level, line.message).expect("a string");
    })
}
