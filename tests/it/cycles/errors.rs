//! Requests that fail, and what becomes of the work of handlers.

use serde_json::{Value, json};

use super::{scenario::Scenario, stage};

/// A creation at second 1, with these statuses for the first PATCH requests.
fn creation(inject: &[u16], more: &Value) -> Scenario {
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "name": "n1", "namespace": "ns1", "uid": "uid-n1" }, "spec": { "a": 1 },
    });
    let mut actions = vec![json!([1, "create", object])];
    actions.extend(more.as_array().cloned().unwrap_or_default());
    Scenario::parse(&json!({
        "handlers": [{ "on": "create", "do": [{ "result": { "x": 1 } }] }],
        "actions": actions, "inject": inject, "until": 30,
    }))
}

fn times(entries: &[Value]) -> Vec<f64> {
    entries.iter().filter_map(|it| it["t"].as_f64()).map(|it| (it * 10.0).round() / 10.0).collect()
}

#[test]
fn a_patch_that_fails_is_sent_again_and_its_handlers_are_not_called_again() {
    let transcript = stage::play(&creation(&[500, 500, 200], &json!([])));
    assert_eq!(times(&transcript.calls), [1.0]);
    assert_eq!(times(&transcript.patches), [1.0, 2.0, 3.0]);
    assert_eq!(transcript.objects[0]["status"]["create_fn"], json!({ "x": 1 }));
}

#[test]
fn a_newer_event_is_handled_instead_of_the_patch_that_failed() {
    let edit = json!([[1.5, "edit", "n1", { "spec": { "a": 2 } }]]);
    let transcript = stage::play(&creation(&[500], &edit));
    // The call of the first event is not recorded anywhere, so it is repeated for the newer state.
    assert_eq!(transcript.calls.len(), 2);
    assert_eq!(transcript.calls[1]["new"]["spec"]["a"], 2);
    assert_eq!(transcript.objects[0]["status"]["create_fn"], json!({ "x": 1 }));
}

#[test]
fn pauses_between_tries_grow() {
    let transcript = stage::play(&creation(&[500; 6], &json!([])));
    assert_eq!(times(&transcript.patches), [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]);
    assert_eq!(transcript.calls.len(), 1);
}
