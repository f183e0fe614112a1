//! Isolation between scripts that share an object: a script that fails, loops or sleeps affects only its own handlers.
//!
//! Each test runs twice: a hostile and a good script in Lua, and the same two in Rhai.

mod calls;
mod filters;
mod indexes;
mod lifecycles;
mod patches;
mod selectors;
mod slow_filters;

use std::{sync::Arc, time::Duration};

use kopf::{
    logic::{change::registry::Registry, generation::Generation},
    scripting::{Placement, ScriptHost, Source, Terms},
    testing::{
        self, EXAMPLES, Environment, LogCapture, ReloadResult, RunningOperator, object, run_paused,
    },
};
use kopf_apiserver::{ApiServer, ResourceDef};
use serde_json::{Value, json};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// One script in both languages.
#[derive(Clone, Copy)]
struct Script {
    lua: &'static str,
    rhai: &'static str,
}

/// Handles everything of its objects, and logs it.
const GOOD: Script = Script {
    lua: r#"
        local function says(what)
            return function(ctx) ctx.logger:info("good " .. what .. " " .. ctx.name) end
        end
        kopf.on_event("kopfexamples", { id = "seen" }, says("event"))
        kopf.on_create("kopfexamples", { id = "made" }, says("create"))
        kopf.on_update("kopfexamples", { id = "changed" }, says("update"))
        kopf.on_delete("kopfexamples", { id = "gone" }, says("delete"))
        kopf.on_create("others", { id = "other" }, says("other"))
    "#,
    rhai: r#"
        kopf::on_event("kopfexamples", #{ id: "seen" }, |ctx| { ctx.logger.info(`good event ${ctx.name}`); });
        kopf::on_create("kopfexamples", #{ id: "made" }, |ctx| { ctx.logger.info(`good create ${ctx.name}`); });
        kopf::on_update("kopfexamples", #{ id: "changed" }, |ctx| { ctx.logger.info(`good update ${ctx.name}`); });
        kopf::on_delete("kopfexamples", #{ id: "gone" }, |ctx| { ctx.logger.info(`good delete ${ctx.name}`); });
        kopf::on_create("others", #{ id: "other" }, |ctx| { ctx.logger.info(`good other ${ctx.name}`); });
    "#,
};

/// A cluster, and an operator of some scripts.
struct World {
    env: Environment,
    running: RunningOperator,
    host: Arc<ScriptHost>,
    log: LogCapture,
    extension: &'static str,
}

/// Runs a test once for each language. `before` exist before the operator starts.
fn in_both(scripts: &[Script], before: &[Value], test: &impl AsyncFn(&World)) {
    in_both_prepared(scripts, before, |_| {}, test);
}

/// Runs a test once for each language, after a change of the cluster.
fn in_both_prepared(
    scripts: &[Script],
    before: &[Value],
    prepare: impl Fn(&Environment),
    test: &impl AsyncFn(&World),
) {
    for extension in ["lua", "rhai"] {
        run_paused(async {
            let env = environment(before);
            prepare(&env);
            let world = World::start(env, extension, scripts).await;
            test(&world).await;
            world.running.stop().await;
        });
    }
}

impl World {
    async fn start(env: Environment, extension: &'static str, scripts: &[Script]) -> Self {
        let cpu_limit = Duration::from_millis(20);
        let terms = Terms { cpu_limit, ..Terms::from(Placement::CurrentRuntime) };
        World::start_with(env, extension, scripts, terms).await
    }

    async fn start_with(
        env: Environment,
        extension: &'static str,
        scripts: &[Script],
        terms: Terms,
    ) -> Self {
        let log = LogCapture::of("kopf");
        let (host, handlers) = env.load(sources(extension, scripts), terms).await;
        let running =
            RunningOperator::start(env.operator(Arc::<ScriptHost>::clone(&host), handlers));
        World { env, running, host, log, extension }
    }

    /// Saves other scripts. Returns the operator's response.
    async fn reload(&self, scripts: &[Script]) -> ReloadResult {
        let prepared = self.host.prepare(sources(self.extension, scripts)).await;
        let prepared = prepared.expect("the scripts can be loaded");
        let registry = Registry::new(prepared.handlers).expect("unique ids");
        let generation = Generation::new(registry, prepared.lifecycle);
        let answer = self.running.reload(generation).await;
        if answer.is_ok() {
            self.host.take(prepared.scripts);
        }
        answer
    }

    /// Creates an object of the examples.
    fn create(&self, name: &str, labels: Value) {
        self.env.create(labeled(name, labels));
    }

    fn edit(&self, name: &str, merge: Value) {
        self.env.edit(EXAMPLES, &format!("ns1/{name}"), merge);
    }

    fn delete(&self, name: &str) {
        self.env.delete(EXAMPLES, &format!("ns1/{name}"));
    }

    fn find(&self, name: &str) -> Option<Value> {
        self.env.server.get(EXAMPLES, "ns1", name)
    }

    fn finalizers(&self, name: &str) -> Value {
        self.find(name).expect("the object exists")["metadata"]["finalizers"].clone()
    }

    /// Returns the seconds of the log lines that contain this string.
    fn seconds(&self, text: &str) -> Vec<u64> {
        let lines = self.log.lines();
        let lines = lines.iter().filter(|it| it.message.contains(text));
        lines.map(|it| (it.at - self.env.start).as_secs()).collect()
    }

    /// Returns the log lines that contain this string.
    fn lines(&self, text: &str) -> Vec<String> {
        let lines = self.log.lines().into_iter().map(|it| it.message);
        lines.filter(|it| it.contains(text)).collect()
    }
}

/// Returns a cluster in which these objects exist.
fn environment(before: &[Value]) -> Environment {
    let others = ResourceDef::new("kopf.dev", "v1", "others", "Other");
    let env = Environment::new(ApiServer::builder().resource(testing::examples()).resource(others));
    env.create_all(before.iter().cloned());
    env
}

fn sources(extension: &str, scripts: &[Script]) -> Vec<Source> {
    let text = |it: &Script| if extension == "lua" { it.lua } else { it.rhai };
    let all = scripts.iter().enumerate();
    all.map(|(number, it)| Source::alone(format!("s{number}.{extension}"), text(it))).collect()
}

/// Returns an object of the examples.
fn labeled(name: &str, labels: Value) -> Value {
    let mut body = object("ns1", name);
    body["metadata"]["labels"] = labels;
    body
}

/// Returns an object of another resource.
fn other(name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "Other",
        "metadata": { "namespace": "ns1", "name": name, "uid": name }, "spec": {},
    })
}
