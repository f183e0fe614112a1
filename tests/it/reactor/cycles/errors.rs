//! Failing requests, and their effects on the work of handlers.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::NamespaceScope,
    testing::{Environment, object, pass},
};
use serde_json::{Value, json};
use tokio::time;

use super::{
    heard::Listener,
    run::run,
    scenario::{Scenario, example},
    transcript::times,
};

/// Returns a creation at second 1, with these statuses for the first PATCH requests.
fn creation(inject: &[u16], more: &Value) -> Scenario {
    let mut actions = vec![json!([1, "create", example()])];
    actions.extend(more.as_array().cloned().unwrap_or_default());
    Scenario::parse(&json!({
        "handlers": [{ "on": "create", "do": [{ "result": { "x": 1 } }] }],
        "actions": actions, "inject": inject, "until": 30,
    }))
}

#[test]
fn a_patch_that_fails_is_sent_again_and_its_handlers_are_not_called_again() {
    let transcript = run(&creation(&[500, 500, 200], &json!([])));
    assert_eq!(times(&transcript.calls), [1.0]);
    assert_eq!(times(&transcript.patches), [1.0, 2.0, 3.0]);
    assert_eq!(transcript.objects[0]["status"]["create_fn"], json!({ "x": 1 }));
}

#[test]
fn pauses_between_tries_grow() {
    let transcript = run(&creation(&[500; 6], &json!([])));
    assert_eq!(times(&transcript.patches), [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]);
    assert_eq!(transcript.calls.len(), 1);
}

#[test]
fn raw_events_are_seen_once_even_if_their_object_cannot_be_handled() {
    let mut broken = object("ns1", "n1");
    broken["metadata"]["annotations"] =
        json!({ "kopf.zalando.org/last-handled-configuration": "{" });
    let transcript = run(&Scenario::parse(&json!({
        "handlers": [{ "on": "event" }, { "on": "create" }],
        "actions": [[1, "create", broken]], "until": 30,
    })));
    assert_eq!(times(&transcript.calls), [1.0]);
    assert_eq!(transcript.calls[0]["call"], "event_fn");
}

#[tokio::test(start_paused = true)]
async fn a_bug_in_one_cycle_costs_only_that_object_a_pause() {
    let env = Environment::default();
    let mut listener = Listener::new(NamespaceScope::Cluster);
    listener.act = |name| assert_ne!(name, "cursed", "a bug");
    let operator = listener.hears_examples("made", Kind::Create, Duration::ZERO).start(&env);
    pass(1).await;
    for name in ["cursed", "well"] {
        env.create(object("ns1", name));
    }
    time::sleep(Duration::from_millis(2500)).await;
    let mut called = operator.end_with_names().await;
    called.sort();
    assert_eq!(called, ["cursed", "cursed", "cursed", "well"], "at once, after 1 s, after 2 s");
}
