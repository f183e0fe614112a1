//! Failing patches, at any point of an object's life: no result is lost, and no finished handler is called again.

use kopf::testing::{self, run_paused};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::{Value, json};

use super::{
    run::ScenarioRun,
    scenario::{Action, Scenario, example},
    transcript::Transcript,
};

/// The ways in which a PATCH can fail. All are final: the client does not repeat requests in these tests.
const MISHAPS: [FaultEffect; 5] = [
    FaultEffect::Refuse { code: 409, retry_after_seconds: None },
    FaultEffect::Refuse { code: 500, retry_after_seconds: None },
    FaultEffect::Refuse { code: 503, retry_after_seconds: None },
    FaultEffect::Refuse { code: 403, retry_after_seconds: None },
    FaultEffect::TimeoutAfterwards,
];

/// Returns the life of an object: created with results, retries and sub-handlers, updated, deleted. Results go to the status, which
/// has separate requests.
fn life(more: &[Value]) -> Scenario {
    let later = json!(["TemporaryError", "later", { "delay": 5 }]);
    let mut actions = vec![
        json!([1, "create", example()]),
        json!([40, "edit", "n1", { "spec": { "a": 2 } }]),
        json!([80, "delete", "n1"]),
    ];
    actions.extend(more.iter().cloned());
    actions.sort_by(|a, b| a[0].as_f64().partial_cmp(&b[0].as_f64()).expect("times"));
    Scenario::parse(&json!({
        "handlers": [
            { "on": "create", "fn": "a", "do": [{ "result": { "x": 1 } }] },
            { "on": "create", "fn": "b", "do": [{ "raises": later }, { "result": 2 }] },
            { "on": "create", "fn": "p", "do": [{ "result": 3, "sub": [
                { "id": "s", "do": [{ "result": 4 }] }, { "id": "t", "do": [{ "raises": later }, { "result": 5 }] },
            ] }] },
            { "on": "update", "fn": "u", "do": [{ "result": 6 }] },
            { "on": "delete", "fn": "d", "do": [{}] },
        ],
        "actions": actions, "status_subresource": true, "until": 120,
    }))
}

/// Runs a scenario with one failure at the `nth` PATCH, counted from one. Also returns the object before its deletion.
fn played(scenario: &Scenario, nth: usize, mishap: &FaultEffect) -> (Transcript, Value) {
    run_paused(async {
        let run = ScenarioRun::new(scenario);
        let server = &run.env.server;
        let passed = u32::try_from(nth - 1).expect("a small number");
        if passed > 0 {
            server.fault(Fault::always(FaultEffect::Pass).on("PATCH", "").times(passed));
        }
        server.fault(Fault::always(mishap.clone()).on("PATCH", "").times(1));
        let running = run.start(scenario, testing::client(server));
        let mut last = Value::Null;
        let act = run.act_all(scenario, |action| {
            if matches!(action, Action::Delete(_)) {
                last = run.transcript().objects.first().cloned().unwrap_or_default();
            }
        });
        act.await;
        let transcript = run.transcript();
        drop(running);
        (transcript, last)
    })
}

#[test]
fn a_patch_that_fails_loses_no_result_and_repeats_no_handler() {
    let scenario = life(&[]);
    let (undisturbed, object) = played(&scenario, 1000, &FaultEffect::Pass);
    let usual = undisturbed.attempts();
    let status = json!({ "a": { "x": 1 }, "b": 2, "p": 3, "p/s": 4, "p/t": 5, "u": 6 });
    assert_eq!(object["status"], status);
    for nth in 1..=undisturbed.patches.len() {
        for mishap in &MISHAPS {
            let (transcript, object) = played(&scenario, nth, mishap);
            let at = format!("{mishap:?} at PATCH {nth}");
            assert_eq!(transcript.attempts(), usual, "{at}");
            assert_eq!(object["status"], status, "{at}");
            assert!(transcript.objects.is_empty(), "{at}: left behind {:?}", transcript.objects);
        }
    }
}

#[test]
fn a_newer_event_during_the_pause_after_it_changes_nothing_about_that() {
    // A user makes an edit half a second after each request that can fail: during the pause.
    let edits = [1.5, 6.5, 40.5, 80.5].map(
        |at| json!([at, "edit", "n1", { "metadata": { "labels": { "t": format!("t{at}") } } }]),
    );
    let scenario = life(&edits);
    let status = json!({ "a": { "x": 1 }, "b": 2, "p": 3, "p/s": 4, "p/t": 5, "u": 6 });
    let (undisturbed, _) = played(&scenario, 1000, &FaultEffect::Pass);
    for nth in 1..=undisturbed.patches.len() {
        for mishap in &MISHAPS {
            let (transcript, object) = played(&scenario, nth, mishap);
            let at = format!("{mishap:?} at PATCH {nth}");
            let seen = transcript.attempts();
            for once in ["a#0", "b#0", "b#1", "p/s#0", "p/t#0", "p/t#1", "d#0"] {
                let count = seen.iter().filter(|it| *it == once).count();
                assert_eq!(count, 1, "{at}: {once} in {seen:?}");
            }
            assert_eq!(object["status"], status, "{at}");
            assert!(transcript.objects.is_empty(), "{at}: left behind {:?}", transcript.objects);
        }
    }
}

#[test]
fn a_newer_event_that_comes_with_the_lost_answer_is_still_handled() {
    // The patch was applied, so sending it again changes nothing and causes no event.
    let scenario = Scenario::parse(&json!({
        "handlers": [{ "on": "create", "do": [{ "result": 1 }] }, { "on": "update", "do": [{ "result": 2 }] }],
        "actions": [[1, "create", example()], [1.5, "edit", "n1", { "spec": { "a": 2 } }]], "until": 30,
    }));
    let (transcript, _) = played(&scenario, 1, &FaultEffect::TimeoutAfterwards);
    assert_eq!(transcript.attempts(), ["create_fn#0", "update_fn#0"]);
    assert_eq!(transcript.objects[0]["status"], json!({ "create_fn": 1, "update_fn": 2 }));
}

#[test]
fn a_patch_that_changes_nothing_does_not_stall_delayed_handlers() {
    let later = json!(["TemporaryError", "later", { "delay": 5 }]);
    let scenario = Scenario::parse(&json!({
        "handlers": [
            { "on": "event", "do": [{ "result": { "always": "the same" } }] },
            { "on": "create", "do": [{ "raises": later }, { "raises": later }, { "result": "done" }] },
        ],
        "actions": [[1, "create", example()]], "until": 30,
    }));
    let (transcript, _) = played(&scenario, 1000, &FaultEffect::Pass);
    let times = transcript.calls.iter().filter(|it| it["call"] == "create_fn");
    let times: Vec<f64> = times.filter_map(|it| it["t"].as_f64()).map(f64::round).collect();
    assert_eq!(times, [1.0, 6.0, 11.0]);
    assert_eq!(transcript.objects[0]["status"]["create_fn"], "done");
}

#[test]
fn a_patch_that_changes_nothing_keeps_no_later_change_waiting() {
    let scenario = Scenario::parse(&json!({
        "handlers": [
            { "on": "event", "do": [{ "result": { "always": "the same" } }] }, { "on": "create" }, { "on": "update" },
        ],
        "actions": [[1, "create", example()], [2, "edit", "n1", { "spec": { "a": 2 } }]], "until": 30,
    }));
    let (transcript, _) = played(&scenario, 1000, &FaultEffect::Pass);
    let update = transcript.calls.iter().find(|it| it["call"] == "update_fn");
    assert_eq!(
        update.and_then(|it| it["t"].as_f64()).map(f64::round),
        Some(2.0),
        "{:?}",
        transcript.calls
    );
}
