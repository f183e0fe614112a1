//! Operators with a script in both languages, for tests of the state that scripts share with the operator.

use std::sync::Arc;

use kopf::{
    logic::{
        change::registry::Registry,
        generation::{Generation, Version},
    },
    reactor::Operator,
    scripting::{Placement, ScriptHost, Source},
    testing::{Environment, LogCapture, RunningOperator, examples, run_paused},
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};

/// The namespace of the objects.
pub(super) const PLACE: &str = "ns1";

/// A cluster, and the log of its operators.
pub(super) struct World {
    pub(super) env: Environment,
    pub(super) log: LogCapture,
    is_lua: bool,
}

/// One process of an operator.
pub(super) struct Process {
    pub(super) running: RunningOperator,
    host: Arc<ScriptHost>,
}

/// Runs a test in both languages.
pub(super) fn in_both<F: Future<Output = ()>>(test: impl Fn(World) -> F) {
    for is_lua in [true, false] {
        run_paused(async {
            let env = Environment::new(ApiServer::builder().resource(examples()));
            test(World { env, log: LogCapture::of("kopf"), is_lua }).await;
        });
    }
}

impl World {
    /// Returns the script in the language of the run.
    pub(super) fn source(&self, lua: &str, rhai: &str) -> Source {
        let (name, text) = if self.is_lua { ("op.lua", lua) } else { ("op.rhai", rhai) };
        Source::alone(name, text)
    }

    /// Starts a process.
    pub(super) async fn start(&self, source: &Source) -> Process {
        self.start_as(source, |operator| operator).await
    }

    /// Starts a process of an operator with other options.
    pub(super) async fn start_as(
        &self,
        source: &Source,
        change: impl FnOnce(Operator) -> Operator,
    ) -> Process {
        let loaded = self.env.load(vec![source.clone()], Placement::CurrentRuntime);
        let (host, handlers) = loaded.await;
        let operator = self.env.operator(Arc::clone(&host) as _, handlers);
        Process { running: RunningOperator::start(change(operator)), host }
    }

    /// Creates an object with this spec.
    pub(super) fn create(&self, name: &str, spec: &Value) {
        self.env.create(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": { "namespace": PLACE, "name": name, "uid": name }, "spec": spec,
        }));
    }

    /// Returns the names of all `ConfigMap`s with the value of one field of their data, as `NAME=VALUE`.
    pub(super) fn configs(&self, field: &str) -> Vec<String> {
        let all = self.env.server.list("configmaps").into_iter();
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let shown =
            all.map(|it| format!("{}={}", text(&it["metadata"]["name"]), text(&it["data"][field])));
        shown.collect()
    }

    /// Returns the lines that scripts have logged after `SAYS `.
    pub(super) fn said(&self) -> Vec<String> {
        let text = self.log.text();
        text.lines().filter_map(|it| Some(it.split_once("SAYS ")?.1.to_owned())).collect()
    }
}

impl Process {
    /// Loads another version of the script.
    pub(super) async fn reload(&self, source: Source) {
        let prepared = self.host.prepare(vec![source]).await.expect("it loads");
        let registry = Registry::new(prepared.handlers).expect("ids are unique");
        let generation = Generation { version: Version::FIRST, registry, lifecycle: None };
        self.running.reload(generation).await.expect("accepted");
        self.host.take(prepared.scripts);
    }
}
