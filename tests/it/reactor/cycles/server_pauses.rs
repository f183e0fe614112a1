//! A server that requests pauses (`Retry-After`): newer events of the object do not wait for them, and the server gets few
//! requests.

use kopf::{
    logic::handlers::handler::Kind,
    settings::Settings,
    testing::{EXAMPLES, Environment, Link, object, pass},
};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::json;

use super::script::{Script, statuses};

/// Refuses every PATCH, and requests a pause of a minute.
fn busy(env: &Environment) {
    let refuse = FaultEffect::Refuse { code: 429, retry_after_seconds: Some(60) };
    env.server.fault(Fault::always(refuse).on("PATCH", ""));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_server_asks_for_is_kept_while_nothing_happens() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    busy(&env);
    env.create(object("ns1", "a"));
    pass(59).await;
    assert_eq!(statuses(&env, "PATCH"), [429]);
    env.server.clear_faults();
    pass(2).await;
    assert_eq!(statuses(&env, "PATCH"), [429, 200]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_event_ends_a_pause_that_the_server_asks_for_with_one_request() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Event, "seen"), script.quiet(Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    busy(&env);
    env.create(object("ns1", "a"));
    pass(5).await;
    for number in 1..4 {
        env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": number } }));
        pass(15).await;
        // One early request per event.
        assert_eq!(statuses(&env, "PATCH").len(), 1 + number, "{:?}", script.calls.lines());
    }
    assert_eq!(script.count("seen MODIFIED a"), 3, "{:?}", script.calls.lines());
    env.server.clear_faults();
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 9 } }));
    pass(30).await;
    assert_eq!(script.count("made a"), 1, "{:?}", script.calls.lines());
    assert_eq!(statuses(&env, "PATCH").last(), Some(&200));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_ends_a_pause_that_the_server_asks_for_without_a_request() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Event, "seen"), script.quiet(Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    busy(&env);
    env.create(object("ns1", "a"));
    pass(5).await;
    env.delete(EXAMPLES, "ns1/a");
    pass(1).await;
    assert_eq!(script.count("seen DELETED a"), 1, "{:?}", script.calls.lines());
    pass(120).await;
    assert_eq!(statuses(&env, "PATCH"), [429]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn our_own_requests_do_not_end_a_pause_that_the_server_asks_for() {
    let (env, script) = (super::script::with_status(), Script::default());
    let result = |_: &kopf::call::Invocation| {
        kopf::logic::handlers::outcome::CallEnd::Returned(Some(json!(1)))
    };
    let handlers = vec![script.handler((Kind::Create, "made"), result)];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    // The status is accepted, and comes back as an event; the records are not.
    env.server.fault(Fault::always(FaultEffect::Pass).on("PATCH", "/status"));
    busy(&env);
    env.create(object("ns1", "a"));
    pass(59).await;
    assert_eq!(statuses(&env, "PATCH"), [200, 429]);
    env.server.clear_faults();
    pass(10).await;
    assert_eq!(statuses(&env, "PATCH"), [200, 429, 200]);
    assert_eq!(script.count("made a"), 1);
    running.stop().await;
}
