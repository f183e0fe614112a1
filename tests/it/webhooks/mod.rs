//! Admission webhooks from end to end: an operator and an embedded server, in one process or over HTTPS.

mod configurations;
mod conversions;
mod examples;
mod guard;
mod https;
mod published;
mod reviews;

use std::sync::Arc;

use kopf::reactor::Operator;
use kopf::scripting::{Placement, Source, Terms};
use kopf::telemetry::{Metrics, ReviewLabels};
use kopf::testing::{
    Environment, LogCapture, RunningOperator, examples as kopfexamples, run_paused,
};
use kopf::webhooks::LocalWebhooks;
use kopf_apiserver::{ApiServer, Post};
use serde_json::{Value, json};

const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

/// The name of the configurations in `kopf dev` and `kopf test`.
const NAME: &str = "auto.kopf.dev";

/// Returns a server that passes reviews to the operator in this process.
fn local_environment() -> (Environment, LocalWebhooks) {
    let local = LocalWebhooks::default();
    let posting = local.clone();
    let post = Post::new(move |target, body| {
        let local = posting.clone();
        async move {
            let answer = local.review(&target.url, &body).await;
            answer.unwrap_or_else(|| Err(format!("nothing is at {}", target.url)))
        }
    });
    (Environment::new(ApiServer::builder().resource(kopfexamples()).webhooks(post)), local)
}

/// Creates an operator with this Lua script.
async fn operator(env: &Environment, script: &str, local: &LocalWebhooks) -> Operator {
    operator_in(env, ("lua", script), local).await
}

/// Creates an operator with this script, of a language.
async fn operator_in(
    env: &Environment,
    (language, script): (&str, &str),
    local: &LocalWebhooks,
) -> Operator {
    let source = Source::alone(format!("handlers.{language}"), script);
    let terms = Terms::of(Placement::CurrentRuntime, &kopf::settings::Settings::default());
    let (host, handlers) = env.load(vec![source], terms).await;
    Operator { webhooks: Some(Arc::new(local.clone())), ..env.operator(host, handlers) }
}

/// Starts an operator, and waits until its webhooks are configured.
async fn started(env: &Environment, script: &str, local: &LocalWebhooks) -> RunningOperator {
    let running = RunningOperator::start(operator(env, script, local).await);
    env.until(env.start.elapsed().as_secs() + 5).await;
    running
}

/// A running operator, with everything that tests use.
struct Case {
    env: Environment,
    local: LocalWebhooks,
    metrics: Metrics,
    log: LogCapture,
    running: RunningOperator,
}

impl Case {
    /// Sends a request as a user about the object with this name. Returns the status and the body.
    async fn send(&self, method: &str, name: &str, body: &Value) -> (u16, Value) {
        let path =
            if method == "POST" { EXAMPLES.to_owned() } else { format!("{EXAMPLES}/{name}") };
        send(&self.env, method, &path, body).await
    }

    /// Creates an object.
    async fn create(&self, name: &str, spec: &Value) -> (u16, Value) {
        self.send("POST", name, &example(name, spec)).await
    }

    /// Returns the number of reviews of a webhook that ended like this.
    fn count(&self, webhook: &str, result: &'static str) -> u64 {
        let labels = ReviewLabels { webhook: webhook.to_owned(), result };
        self.metrics.reviews.get_or_create(&labels).get()
    }

    async fn pass(&self, seconds: u64) {
        self.env.until(self.env.start.elapsed().as_secs() + seconds).await;
    }
}

/// Runs a test with an operator in Lua and with one in Rhai.
fn in_both<F: Future<Output = Case>>(lua: &str, rhai: &str, test: impl Fn(Case) -> F) {
    for script in [("lua", lua), ("rhai", rhai)] {
        run_paused(async {
            let (env, local) = local_environment();
            let log = LogCapture::of("kopf");
            let operator = operator_in(&env, script, &local).await;
            let metrics = operator.health.metrics().clone();
            let running = RunningOperator::start(operator);
            env.until(5).await;
            let case = test(Case { env, local, metrics, log, running }).await;
            case.running.stop().await;
        });
    }
}

/// Sends a request as a user. Returns the status and the body.
async fn send(env: &Environment, method: &str, path: &str, body: &Value) -> (u16, Value) {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(kube::client::Body::from(body.to_string().into_bytes()));
    let response = env.server.clone().oneshot(request.expect("a request")).await;
    let response = response.expect("the server responds");
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|it| it.to_str().expect("text").to_owned()).collect::<Vec<_>>();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let mut body: Value = serde_json::from_slice(&body).expect("JSON");
    if !warnings.is_empty() {
        body["warnings"] = warnings.into();
    }
    (status, body)
}

const EXAMPLES: &str = "/apis/kopf.dev/v1/namespaces/ns1/kopfexamples";

fn example(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": "ns1", "name": name }, "spec": spec,
    })
}
