//! The API conventions of conditions, by cases.

use serde_json::{Value, json};

use super::*;

fn set(kind: &str, status: ConditionStatus, now: &str) -> ConditionChange {
    ConditionChange::Set(Condition {
        kind: kind.to_owned(),
        status,
        reason: implied(kind, status),
        message: String::new(),
        observed_generation: Some(2),
        now: now.parse().expect("a moment"),
    })
}

fn changed(mut body: Value, change: &ConditionChange) -> Value {
    change.apply(&mut body);
    body
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-01T00:01:00.75Z";

#[test]
fn the_first_condition_makes_the_list() {
    let expected = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Ready", "message": "",
    }] } });
    for body in [json!({}), json!({ "status": null }), json!({ "status": { "conditions": "odd" } })]
    {
        assert_eq!(changed(body, &set("Ready", ConditionStatus::True, EARLY)), expected);
    }
}

#[test]
fn the_time_changes_with_the_status_only() {
    let first = changed(json!({}), &set("Ready", ConditionStatus::True, EARLY));
    let same = changed(first.clone(), &set("Ready", ConditionStatus::True, LATE));
    assert_eq!(same, first);
    let other = changed(first, &set("Ready", ConditionStatus::False, LATE));
    let condition = find(&other, "Ready").expect("it is there");
    assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:01:00Z");
    assert_eq!(condition["reason"], "NotReady");
}

#[test]
fn a_missing_transition_time_is_set() {
    let body = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": null }] } });
    let changed = changed(body, &set("Ready", ConditionStatus::True, EARLY));
    assert_eq!(changed["status"]["conditions"][0]["lastTransitionTime"], EARLY);
}

#[test]
fn other_conditions_and_other_fields_stay_where_they_are() {
    let body = json!({ "status": { "phase": "x", "conditions": [
        { "type": "A", "status": "True" },
        "odd",
        { "type": "Ready", "lastHeartbeatTime": "then", "status": "False" },
        { "type": "Z", "status": "Unknown", "own": 1 },
    ] } });
    let changed = changed(body.clone(), &set("Ready", ConditionStatus::True, EARLY));
    for place in [0, 1, 3] {
        assert_eq!(changed["status"]["conditions"][place], body["status"]["conditions"][place]);
    }
    assert_eq!(changed["status"]["conditions"][2]["lastHeartbeatTime"], "then");
    assert_eq!(changed["status"]["phase"], "x");
}

#[test]
fn removed_conditions_are_gone_and_absent_ones_need_no_removal() {
    let body =
        json!({ "status": { "conditions": [{ "type": "A" }, { "type": "B" }, { "type": "A" }] } });
    let removed = changed(body.clone(), &ConditionChange::Remove("A".into()));
    assert_eq!(removed, json!({ "status": { "conditions": [{ "type": "B" }] } }));
    assert_eq!(changed(body.clone(), &ConditionChange::Remove("C".into())), body);
    assert_eq!(changed(json!({}), &ConditionChange::Remove("C".into())), json!({}));
}

#[test]
fn an_unknown_observed_generation_is_left_out() {
    let ConditionChange::Set(condition) = set("Ready", ConditionStatus::True, EARLY) else {
        panic!("it is set")
    };
    let change = ConditionChange::Set(Condition { observed_generation: None, ..condition });
    let body =
        json!({ "status": { "conditions": [{ "type": "Ready", "observedGeneration": 1 }] } });
    assert_eq!(changed(body, &change)["status"]["conditions"][0].get("observedGeneration"), None);
}

#[test]
fn statuses_are_booleans_and_their_names() {
    for (value, status) in [
        (json!(true), ConditionStatus::True),
        (json!("True"), ConditionStatus::True),
        (json!(false), ConditionStatus::False),
        (json!("False"), ConditionStatus::False),
        (json!("Unknown"), ConditionStatus::Unknown),
    ] {
        assert_eq!(ConditionStatus::read(&value), Ok(status));
    }
    let problem = ConditionStatus::read(&json!("yes")).expect_err("it is refused");
    assert_eq!(problem, r#"the status must be true, false or "Unknown", not "yes""#);
    let problem = ConditionStatus::read(&Value::Null).expect_err("it is refused");
    assert_eq!(problem, r#"the status must be true, false or "Unknown", not nothing"#);
}

#[test]
fn types_are_names_with_or_without_a_domain() {
    for good in ["Ready", "R", "example.com/Ready", "PodScheduled", "a-b.c_d", "9lives"] {
        assert_eq!(check_kind(good), Ok(()), "{good}");
    }
    let long = "x".repeat(317);
    for bad in
        ["", "Not ready", "/Ready", "Example.com/Ready", "a/b/c", "Ready.", "-x", "a..b/c", &long]
    {
        assert!(check_kind(bad).is_err(), "{bad}");
    }
}

#[test]
fn reasons_are_words() {
    for good in ["Deployed", "A", "Waiting_For", "a,b:c", "x9"] {
        assert_eq!(reason(Some(good), "Ready", ConditionStatus::True).as_deref(), Ok(good));
    }
    let long = "x".repeat(1025);
    for bad in ["", "is ready", "9x", "_x", "Deployed.", "x:", "é", &long] {
        assert!(reason(Some(bad), "Ready", ConditionStatus::True).is_err(), "{bad}");
    }
}

#[test]
fn a_reason_that_is_left_out_follows_from_the_type() {
    let implied = |kind, status| reason(None, kind, status).expect("one is made");
    assert_eq!(implied("Ready", ConditionStatus::True), "Ready");
    assert_eq!(implied("Ready", ConditionStatus::False), "NotReady");
    assert_eq!(implied("Ready", ConditionStatus::Unknown), "ReadyUnknown");
    assert_eq!(implied("example.com/Data-Ready", ConditionStatus::True), "DataReady");
    assert_eq!(implied("9lives", ConditionStatus::True), "Is9lives");
    for kind in ["9lives", "a-b.c_d"] {
        for status in [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown] {
            let made = implied(kind, status);
            assert_eq!(reason(Some(&made), kind, status), Ok(made.clone()));
        }
    }
}

#[test]
fn long_messages_are_cut() {
    let long = "é".repeat(40_000);
    let cut = message(Some(&long), "Ready");
    assert_eq!(cut.chars().count(), MESSAGE_CHARS_MAX);
    assert!(cut.ends_with('…'));
    assert_eq!(message(Some("3/3 pods"), "Ready"), "3/3 pods");
}

#[test]
fn a_condition_without_a_message_uses_its_reason() {
    for given in [None, Some("")] {
        assert_eq!(message(given, "NotReady"), "NotReady");
    }
}
