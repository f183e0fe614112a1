//! (e), (f), and more about daemons and timers.

use serde_json::{Value, json};

use crate::reactor::cycles::{
    run,
    scenario::{Scenario, example},
    transcript::{Transcript, tenths, times},
};

/// Runs the handlers and actions; an object is created at second 1.
fn run_all(input: Value) -> Transcript {
    let mut object = example();
    object["metadata"]["labels"] = json!({ "x": "y" });
    let Value::Object(mut input) = input else { panic!("a map") };
    let mut actions = vec![json!([1, "create", object])];
    actions.extend(input["actions"].as_array().cloned().unwrap_or_default());
    input.insert("actions".into(), actions.into());
    input.entry("until").or_insert_with(|| 100.into());
    run::run(&Scenario::parse(&Value::Object(input)))
}

/// Returns the times of the PATCH requests, with the statuses.
fn patches(transcript: &Transcript) -> Vec<(f64, u64)> {
    let status = |it: &Value| it["status"].as_u64().expect("a status");
    transcript.patches.iter().map(|it| (tenths(&it["t"]), status(it))).collect()
}

#[test]
fn an_error_of_the_api_does_not_end_a_timer_and_loses_no_result() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "timer", "interval": 10, "do": [{ "result": { "n": 1 } }, {}] }],
        "actions": [], "inject": [200, 500, 500, 200], "until": 30,
    }));
    // The interval begins when the patch is accepted; the function is not called again for it.
    assert_eq!(patches(&transcript), [(1.0, 200), (1.0, 500), (2.0, 500), (3.0, 200)]);
    assert_eq!(times(&transcript.calls), [1.0, 13.0, 23.0]);
    assert_eq!(transcript.objects[0]["status"]["timer_fn"], json!({ "n": 1 }));
}

#[test]
fn an_error_of_the_api_does_not_end_a_daemon_whose_patch_goes_with_its_next_attempt() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "do": [
            { "patch": { "status": { "x": 1, "y": 1 } }, "raises": ["TemporaryError", "later", { "delay": 10 }] },
            { "patch": { "status": { "x": 2 } } },
        ] }],
        "actions": [], "inject": [200, 500],
    }));
    assert_eq!(times(&transcript.calls), [1.0, 11.0]);
    assert_eq!(transcript.objects[0]["status"], json!({ "x": 2, "y": 1 }));
}

#[test]
fn a_patch_that_is_never_taken_is_a_failed_attempt_and_not_the_end() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "backoff": 5, "do": [{ "result": 1 }] }],
        "actions": [], "inject": [200, 403, 403],
    }));
    assert_eq!(times(&transcript.calls), [1.0, 6.0, 11.0]);
    assert_eq!(transcript.objects[0]["status"]["daemon_fn"], 1);
}

#[test]
fn an_idle_timer_waits_quietly_for_a_change_and_never_blocks_the_deletion() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "timer", "idle": 10 }],
        "actions": [[35, "edit", "n1", { "spec": { "a": 2 } }], [80, "delete", "n1"]],
    }));
    // The change is seen at the end of a period, and must then be as old as the idle time. A timer in a busy loop would never let
    // the virtual time get here.
    assert_eq!(times(&transcript.calls), [11.0, 45.0]);
    assert_eq!(patches(&transcript), [(1.0, 200), (80.0, 200)]);
    assert!(transcript.objects.is_empty(), "it is gone at once");
}

#[test]
fn only_changes_of_the_essence_keep_a_timer_waiting_also_without_change_handlers() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "timer", "idle": 10, "interval": 3, "do": [{ "result": { "n": 1 } }] }],
        "actions": [
            [5, "edit", "n1", { "status": { "x": 1 } }],
            [8, "edit", "n1", { "metadata": { "finalizers": ["kopf.zalando.org/KopfFinalizerMarker", "a/b"] } }],
            [15, "edit", "n1", { "spec": { "a": 2 } }],
        ],
        "until": 30,
    }));
    assert_eq!(times(&transcript.calls), [11.0, 14.0, 25.0, 28.0]);
}

#[test]
fn what_runs_for_an_object_that_is_deleted_at_once_stops() {
    // Events arrive half a second late: the object never had a finalizer, and its only other event is its end.
    let transcript = run_all(json!({
        "handlers": [
            { "on": "daemon", "do": [{ "wait_stopped": true }] },
            { "on": "timer", "interval": 10 },
        ],
        "actions": [[1.2, "delete", "n1"]], "latency": 0.5,
    }));
    let [daemon, timer] = &transcript.calls[..] else { panic!("{:?}", transcript.calls) };
    assert_eq!((daemon["call"].as_str(), tenths(&daemon["stopped_at"])), (Some("daemon_fn"), 1.7));
    assert_eq!(daemon["stopped_reason"], json!(["RESOURCE_DELETED"]));
    assert_eq!((timer["call"].as_str(), tenths(&timer["t"])), (Some("timer_fn"), 1.5));
}

#[test]
fn a_daemon_of_an_object_that_is_gone_is_cancelled_in_its_time() {
    let transcript = run_all(json!({
        "handlers": [{
            "on": "daemon", "do": [{ "sleep": 1000 }], "cancellation_backoff": 2, "cancellation_timeout": 3,
        }],
        "actions": [[1.2, "delete", "n1"]], "latency": 0.5,
    }));
    assert_eq!(transcript.calls[0]["cancelled_at"], json!(3.7));
}

#[test]
fn an_object_is_released_as_soon_as_its_daemon_has_ended() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "do": [{ "sleep": 25 }] }],
        "actions": [[10, "delete", "n1"]],
    }));
    assert_eq!(patches(&transcript), [(1.0, 200), (26.0, 200)], "without a touch in between");
    assert!(transcript.objects.is_empty());
}

#[test]
fn a_daemon_that_is_wanted_again_while_it_stops_starts_again_when_it_has() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "do": [{ "sleep": 20 }], "labels": { "x": "y" } }],
        "actions": [
            [5, "edit", "n1", { "metadata": { "labels": { "x": "n" } } }],
            [8, "edit", "n1", { "metadata": { "labels": { "x": "y" } } }],
        ],
        "until": 30,
    }));
    assert_eq!(times(&transcript.calls), [1.0, 21.0]);
}

#[test]
fn a_hung_daemon_has_five_seconds_at_the_end_of_the_operator() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "do": [{ "sleep": 1000 }] }],
        "actions": [[10, "stop"], [30, "start"]], "until": 40,
    }));
    assert_eq!(times(&transcript.calls), [1.0, 30.0]);
    assert_eq!(transcript.calls[0]["cancelled_at"], json!(15.0));
}

#[test]
fn a_daemon_with_a_timeout_is_cancelled_at_the_end_of_the_operator() {
    let transcript = run_all(json!({
        "handlers": [{ "on": "daemon", "do": [{ "sleep": 1000 }], "cancellation_backoff": 2, "cancellation_timeout": 1 }],
        "actions": [[10, "stop"], [30, "start"]], "until": 40,
    }));
    assert_eq!(transcript.calls[0]["cancelled_at"], json!(12.0));
}
