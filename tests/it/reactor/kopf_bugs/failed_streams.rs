//! (b) A failed stream is logged once, seen by probes, retried, and recovers by itself; the others are not affected.

use kopf::{
    reactor::NamespaceScope,
    telemetry::{Health, HealthState},
    testing::{Environment, LogCapture, object, pass},
};
use tracing::Level;

use crate::reactor::cycles::heard::Listener;

const STREAM: &str = "stream/kopfexamples.v1.kopf.dev cluster-wide";

fn state(health: &Health) -> Option<HealthState> {
    health.parts().get(STREAM).map(|it| it.state)
}

fn told(log: &LogCapture, level: Level) -> usize {
    let lines = log.lines().into_iter();
    lines.filter(|it| it.level == level && it.message.contains("kopfexamples")).count()
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_listed_is_tried_until_it_can() {
    for code in [403, 404, 500, 503] {
        let env = Environment::default();
        env.create(pod("p"));
        env.create(object("ns1", "a"));
        env.refuse(code, "GET", "/kopfexamples");
        let listener = Listener::new(NamespaceScope::Cluster)
            .hears_events("kopfexamples")
            .hears_events("pods");
        let log = LogCapture::of("kopf.watch");
        let operator = listener.start(&env);
        let health = operator.running.health.clone();
        pass(600).await;
        assert_eq!(operator.heard(), ["pods listed p"], "{code}: the others are served");
        assert_eq!(state(&health), Some(HealthState::Unready), "{code}");
        assert_eq!(told(&log, Level::ERROR), 1, "{code}: it is told once: {:?}", log.lines());
        env.server.clear_faults();
        pass(60).await;
        assert_eq!(operator.heard(), ["kopfexamples listed a"], "{code}: it recovers");
        assert_eq!(state(&health), Some(HealthState::Ready), "{code}");
        assert_eq!(told(&log, Level::INFO), 1, "{code}: that is told, too: {:?}", log.lines());
        operator.end().await;
        assert_eq!(state(&health), None, "{code}: what has ended is not ill");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_in_the_middle_is_overcome_and_loses_nothing() {
    let env = Environment::default();
    let operator = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples").start(&env);
    let health = operator.running.health.clone();
    pass(1).await;
    env.refuse(500, "GET", "/kopfexamples");
    env.server.close_watches();
    env.create(object("ns1", "a"));
    pass(3600).await;
    assert_eq!(state(&health), Some(HealthState::Unready));
    env.server.clear_faults();
    pass(60).await;
    assert_eq!(state(&health), Some(HealthState::Ready));
    assert_eq!(
        operator.end().await,
        ["kopfexamples ADDED a"],
        "the watch goes on from its version"
    );
}

#[tokio::test(start_paused = true)]
async fn the_pauses_between_attempts_grow_but_not_beyond_half_a_minute() {
    let env = Environment::default();
    env.refuse(403, "GET", "/kopfexamples");
    let operator = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples").start(&env);
    let lists =
        || env.server.requests().iter().filter(|it| it.path.ends_with("/kopfexamples")).count();
    pass(62).await;
    assert_eq!(lists(), 7, "after 0, 1, 3, 7, 15, 31 and 61 seconds");
    pass(300).await;
    assert_eq!(lists(), 17);
    operator.end().await;
}

fn pod(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "ns1", "name": name },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
    })
}
