//! (j) Live changes overtake the backlog of a restart.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::NamespaceScope,
    testing::{EXAMPLES, Environment, object, pass},
};

use crate::reactor::cycles::heard::Listener;

fn environment(objects: usize) -> Environment {
    let env = Environment::default();
    env.create_all((0..objects).map(|number| object("ns1", &format!("old-{number}"))));
    env
}

fn slow(limit: usize) -> Listener {
    let mut listener = Listener::new(NamespaceScope::Cluster);
    listener.settings.queueing.worker_limit = Some(limit);
    listener.hears_examples("slow", Kind::Create, Duration::from_secs(10))
}

#[tokio::test(start_paused = true)]
async fn what_happens_now_does_not_wait_behind_what_was_there_at_the_start() {
    let env = environment(1000);
    let operator = slow(2).start(&env);
    pass(1).await;
    assert_eq!(operator.heard().len(), 2);
    env.create(object("ns1", "new"));
    pass(10).await;
    let heard = operator.heard();
    assert_eq!(heard.first().map(String::as_str), Some("slow create new"), "{heard:?}");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_listed_object_that_changes_now_moves_up() {
    let env = environment(1000);
    let operator = slow(1).start(&env);
    pass(1).await;
    operator.heard();
    let edit = serde_json::json!({ "spec": { "field": 1 } });
    env.edit(EXAMPLES, "ns1/old-777", edit);
    pass(10).await;
    assert_eq!(operator.heard(), ["slow create old-777"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_place_of_a_worker_that_only_waits_for_more_events() {
    let env = environment(20);
    let operator = slow(1).start(&env);
    // Each call takes ten seconds, and its patch no time.
    pass(205).await;
    assert_eq!(operator.end().await.len(), 20);
}
