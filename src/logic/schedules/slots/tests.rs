//! The Lease of the slots.

use super::*;

fn slot(minute: i64, by: &str) -> ScheduleSlot {
    let slot = Timestamp::from_second(minute * 60).expect("a timestamp");
    ScheduleSlot {
        slot,
        started: slot,
        ended: None,
        by: by.to_owned(),
        schedule: "every 60 s".to_owned(),
    }
}

#[test]
fn slots_are_read_as_they_were_written_and_foreign_fields_stay() {
    let place = LeaseRef::new("ops", "kopf", "a");
    let mut slots = ScheduleSlots::new();
    store(&mut slots, "x", slot(1, "a"), &BTreeSet::new());
    let lease = place.lease(None, &slots, Timestamp::UNIX_EPOCH);
    assert_eq!(lease["metadata"]["name"], "kopf-schedules");
    assert_eq!(lease["spec"]["holderIdentity"], "a");
    assert_eq!(read(Some(&lease)), Ok(slots.clone()));
    let mut labeled = lease;
    labeled["metadata"]["labels"] = json!({ "team": "x" });
    labeled["metadata"]["resourceVersion"] = "7".into();
    let lease = place.lease(Some(&labeled), &slots, Timestamp::UNIX_EPOCH);
    assert_eq!(lease["metadata"], labeled["metadata"]);
}

#[test]
fn an_unreadable_annotation_is_no_empty_one() {
    let lease = |text: &str| json!({ "metadata": { "annotations": { ANNOTATION: text } } });
    let problem = read(Some(&lease("{"))).expect_err("unreadable");
    assert!(problem.contains("remove the annotation"), "{problem}");
    assert_eq!(read(Some(&lease("{}"))), Ok(ScheduleSlots::new()));
    assert_eq!(read(Some(&json!({}))), Ok(ScheduleSlots::new()));
}

#[test]
fn the_oldest_unknown_slots_are_dropped_and_known_ones_never() {
    let mut slots = ScheduleSlots::new();
    let key = |number: i64| format!("{number:04}");
    let known: BTreeSet<_> = (0..3).map(key).collect();
    for number in 0..500 {
        store(&mut slots, &key(number), slot(number, "a"), &known);
    }
    assert_eq!(slots.len(), KEPT_MAX);
    let kept: Vec<_> = slots.keys().take(4).map(String::as_str).collect();
    assert_eq!(kept, ["0000", "0001", "0002", "0303"]);
    let all: BTreeSet<_> = (0..500).map(key).collect();
    for number in 0..500 {
        store(&mut slots, &key(number), slot(number, "a"), &all);
    }
    assert_eq!(slots.len(), 500);
}
