//! (k) A watch is read even when handlers are slow.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::NamespaceScope,
    testing::{EXAMPLES, Environment, object, pass},
};
use serde_json::json;

use crate::reactor::cycles::heard::Listener;

const HOUR: Duration = Duration::from_hours(1);
const EDITS: usize = 20_000;

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_blocked_for_an_hour_holds_up_neither_the_watch_nor_the_memory() {
    let env = Environment::default();
    env.create(object("ns1", "busy"));
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_examples("create", Kind::Create, HOUR)
        .hears_examples("update", Kind::Update, Duration::ZERO)
        .start(&env);
    pass(1).await;
    for number in 0..EDITS {
        let edit = json!({ "spec": { "number": number } });
        env.edit(EXAMPLES, "ns1/busy", edit);
        if number % 500 == 0 {
            pass(1).await;
        }
    }
    env.create(object("ns1", "other"));
    pass(1).await;
    assert_eq!(operator.heard(), ["create create busy", "create create other"]);
    let watches = env.server.requests();
    let watches =
        watches.iter().filter(|it| it.path.contains("kopfexamples") && it.query.contains("watch"));
    assert_eq!(watches.count(), 1, "the server had no reason to cut us off");
    pass(2 * HOUR.as_secs()).await;
    let heard = operator.end().await;
    assert!(
        (1..20).contains(&heard.len()),
        "what changed meanwhile is handled in one go: {heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn handlers_of_raw_events_see_each_of_them() {
    let env = Environment::default();
    env.create(object("ns1", "busy"));
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_examples("raw", Kind::Event, Duration::from_secs(1))
        .start(&env);
    pass(1).await;
    for number in 0..500 {
        let edit = json!({ "spec": { "number": number } });
        env.edit(EXAMPLES, "ns1/busy", edit);
    }
    pass(600).await;
    assert_eq!(operator.end().await.len(), 501);
}

#[tokio::test(start_paused = true)]
async fn objects_are_handled_side_by_side_and_what_happens_to_one_in_its_order() {
    let env = Environment::default();
    let operator = Listener::new(NamespaceScope::Cluster)
        .hears_examples("raw", Kind::Event, Duration::from_secs(10))
        .start(&env);
    pass(1).await;
    for name in ["a", "b"] {
        env.create(object("ns1", name));
        let edit = json!({ "spec": { "number": 1 } });
        env.edit(EXAMPLES, &format!("ns1/{name}"), edit);
        env.delete(EXAMPLES, &format!("ns1/{name}"));
    }
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        pass(1).await;
        assert_eq!(operator.heard_sorted(), [format!("raw {kind} a"), format!("raw {kind} b")]);
        pass(9).await;
    }
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_worker_handles_one_object_after_the_other() {
    let env = Environment::default();
    for name in ["a", "b", "c"] {
        env.create(object("ns1", name));
    }
    let mut listener = Listener::new(NamespaceScope::Cluster);
    listener.settings.queueing.worker_limit = Some(1);
    let operator =
        listener.hears_examples("slow", Kind::Create, Duration::from_secs(10)).start(&env);
    pass(1).await;
    for _ in 0..3 {
        assert_eq!(operator.heard().len(), 1);
        pass(10).await;
    }
    assert_eq!(operator.end().await, [""; 0]);
}
