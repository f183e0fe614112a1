//! The visible signs of failing handlers: Kubernetes events, metrics and log lines.

mod conditions;
mod events;
mod outage;
mod secrets;
mod suspended;
mod unhandled;

use std::sync::Arc;

use kopf::{
    reactor::Operator,
    scripting::{Placement, ScriptHost, Source, Terms},
    settings::Settings,
    testing::{Environment, LogCapture, RunningOperator, object, run_paused},
};
use kopf_apiserver::ApiServer;
use serde_json::Value;
use tokio::time::Instant;

/// One script in both languages.
struct Script {
    lua: &'static str,
    rhai: &'static str,
}

/// An operator whose handlers fail.
struct Failing {
    env: Environment,
    running: RunningOperator,
    log: LogCapture,
}

/// Runs a test once for each language.
fn in_both(script: &Script, change: impl Fn(&mut Settings), test: impl AsyncFn(&Failing)) {
    in_both_of(environment, script, change, test);
}

/// Runs a test once for each language, in this environment.
#[expect(clippy::needless_pass_by_value, reason = "tests are closures")]
fn in_both_of(
    environment: impl Fn() -> Environment,
    script: &Script,
    change: impl Fn(&mut Settings),
    test: impl AsyncFn(&Failing),
) {
    for (name, text) in [("fails.lua", script.lua), ("fails.rhai", script.rhai)] {
        run_paused(async {
            let env = environment();
            let failing = Failing::start(env, (name, text), &change).await;
            test(&failing).await;
            failing.running.stop().await;
        });
    }
}

fn environment() -> Environment {
    Environment::new(ApiServer::builder().resource(kopf::testing::examples()))
}

impl Failing {
    async fn start(
        env: Environment,
        (name, text): (&str, &str),
        change: impl Fn(&mut Settings),
    ) -> Self {
        let log = LogCapture::of("kopf");
        let terms = Terms::from(Placement::CurrentRuntime);
        let (host, handlers) = env.load(vec![Source::alone(name, text)], terms).await;
        let operator: Operator = env.operator(Arc::<ScriptHost>::clone(&host), handlers);
        let mut settings = operator.settings.lock().clone();
        settings.posting.failures = true;
        change(&mut settings);
        *operator.settings.lock() = settings;
        Failing { running: RunningOperator::start(operator), env, log }
    }

    fn create(&self, name: &str) {
        self.env.create(object("ns1", name));
    }

    /// Returns the numbers by handler: objects that are retried, that have failed, seconds of the oldest.
    fn counts(&self) -> Vec<(String, i64, i64, u64)> {
        let counts = self.running.health.metrics().failures.counts(Instant::now()).into_iter();
        counts.map(|(of, it)| (of.handler, it.retrying, it.failed, it.oldest.as_secs())).collect()
    }

    /// Returns the events about failures: reason, count and message, by name.
    fn events(&self) -> Vec<(String, u64, String)> {
        let list = self.env.server.list("events").into_iter();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let mut events: Vec<_> = list
            .map(|it| {
                (text(&it, "reason"), it["count"].as_u64().unwrap_or(0), text(&it, "message"))
            })
            .collect();
        events.sort();
        events
    }
}
