//! (j) Live changes overtake the backlog of a restart.

use std::time::Duration;

use kopf::{
    logic::{declare::Argument, handler::Kind},
    reactor::Scope,
    testing,
};
use kopf_apiserver::ApiServer;

use crate::cycles::{
    heard::{Listener, pass},
    watched::{EXAMPLES, object},
};

fn server(objects: usize) -> ApiServer {
    let examples = testing::examples();
    let server = ApiServer::builder().resource(examples).build();
    for number in 0..objects {
        server.create(EXAMPLES, object("ns1", &format!("old-{number}"))).expect("it is new");
    }
    server
}

fn slow(limit: usize) -> Listener {
    let mut listener = Listener::new(Scope::Cluster);
    listener.settings.queueing.worker_limit = Some(limit);
    let examples = vec![Argument::Value("kopfexamples".into())];
    listener.hears(("slow", Kind::Create), examples, &[], Duration::from_secs(10))
}

#[tokio::test(start_paused = true)]
async fn what_happens_now_does_not_wait_behind_what_was_there_at_the_start() {
    let server = server(1000);
    let operator = slow(2).start(&server);
    pass(1).await;
    assert_eq!(operator.heard().len(), 2);
    server.create(EXAMPLES, object("ns1", "new")).expect("it is new");
    pass(10).await;
    let heard = operator.heard();
    assert_eq!(heard.first().map(String::as_str), Some("slow create new"), "{heard:?}");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_listed_object_that_changes_now_moves_up() {
    let server = server(1000);
    let operator = slow(1).start(&server);
    pass(1).await;
    operator.heard();
    let edit = serde_json::json!({ "spec": { "field": 1 } });
    server.merge(EXAMPLES, "ns1", "old-777", edit).expect("it is there");
    pass(10).await;
    assert_eq!(operator.heard(), ["slow create old-777"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_place_of_a_worker_that_only_waits_for_more_events() {
    let server = server(20);
    let operator = slow(1).start(&server);
    // Each call takes ten seconds, and the answer to its patch no time.
    pass(205).await;
    assert_eq!(operator.end().await.len(), 20);
}
