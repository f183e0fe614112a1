//! (k) A watch is drained even when handlers are slow.

use std::time::Duration;

use kopf::{
    logic::{declare::Argument, handler::Kind},
    reactor::Scope,
    testing,
};
use kopf_apiserver::ApiServer;
use serde_json::json;

use crate::cycles::{
    heard::{Listener, pass},
    watched::{EXAMPLES, object},
};

const HOUR: Duration = Duration::from_hours(1);
const EDITS: usize = 20_000;

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_blocked_for_an_hour_holds_up_neither_the_watch_nor_the_memory() {
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    server.create(EXAMPLES, object("ns1", "busy")).expect("it is new");
    let selector = || vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(Scope::Cluster)
        .hears(("create", Kind::Create), selector(), &[], HOUR)
        .hears(("update", Kind::Update), selector(), &[], Duration::ZERO)
        .start(&server);
    pass(1).await;
    for number in 0..EDITS {
        let edit = json!({ "spec": { "number": number } });
        server.merge(EXAMPLES, "ns1", "busy", edit).expect("it is there");
        if number % 500 == 0 {
            pass(1).await;
        }
    }
    server.create(EXAMPLES, object("ns1", "other")).expect("it is new");
    pass(1).await;
    assert_eq!(operator.heard(), ["create create busy", "create create other"]);
    let watches = server.requests();
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
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    server.create(EXAMPLES, object("ns1", "busy")).expect("it is new");
    let selector = vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(Scope::Cluster)
        .hears(("raw", Kind::Event), selector, &[], Duration::from_secs(1))
        .start(&server);
    pass(1).await;
    for number in 0..500 {
        let edit = json!({ "spec": { "number": number } });
        server.merge(EXAMPLES, "ns1", "busy", edit).expect("it is there");
    }
    pass(600).await;
    assert_eq!(operator.end().await.len(), 501);
}

#[tokio::test(start_paused = true)]
async fn objects_are_handled_side_by_side_and_what_happens_to_one_in_its_order() {
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    let selector = vec![Argument::Value("kopfexamples".into())];
    let operator = Listener::new(Scope::Cluster)
        .hears(("raw", Kind::Event), selector, &[], Duration::from_secs(10))
        .start(&server);
    pass(1).await;
    for name in ["a", "b"] {
        server.create(EXAMPLES, object("ns1", name)).expect("it is new");
        let edit = json!({ "spec": { "number": 1 } });
        server.merge(EXAMPLES, "ns1", name, edit).expect("it is there");
        server.delete(EXAMPLES, "ns1", name).expect("it is there");
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
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    for name in ["a", "b", "c"] {
        server.create(EXAMPLES, object("ns1", name)).expect("it is new");
    }
    let mut listener = Listener::new(Scope::Cluster);
    listener.settings.queueing.worker_limit = Some(1);
    let selector = vec![Argument::Value("kopfexamples".into())];
    let operator = listener
        .hears(("slow", Kind::Create), selector, &[], Duration::from_secs(10))
        .start(&server);
    pass(1).await;
    for _ in 0..3 {
        assert_eq!(operator.heard().len(), 1);
        pass(10).await;
    }
    assert_eq!(operator.end().await, [""; 0]);
}
