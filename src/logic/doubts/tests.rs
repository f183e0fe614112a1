//! Pauses of filters that fail, and when they are forgotten.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Doubts, Failed};
use crate::logic::{
    cause::Change,
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
    handler::{Handler, Kind},
    reason::Reason,
};

const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

fn handler(kind: Kind, slot: u32) -> Arc<Handler> {
    let function = Function::new(ScriptId(1), slot, "f");
    let selectors = vec![Argument::Value("pods".into())];
    let location = "test:1".into();
    let declaration = Declaration { kind, selectors, options: Vec::new(), function, location };
    Arc::new(declare(declaration).expect("a valid declaration"))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn pauses_grow_and_the_last_one_repeats() {
    let (mut doubts, create) = (Doubts::default(), handler(Kind::Create, 1));
    for (now, pause, attempt) in [(0, 1, 1), (1, 5, 2), (6, 5, 3)] {
        doubts.begin();
        assert!(!doubts.rests(&create, secs(now)));
        let failed = doubts.failed(&create, Duration::ZERO, &DELAYS, secs(now));
        assert_eq!(failed, Failed { attempt, pause: Some(secs(pause)) });
        doubts.end(secs(now));
        assert_eq!(doubts.pause(secs(now)), Some(secs(pause)));
    }
}

#[test]
fn a_filter_that_takes_long_rests_for_ten_times_as_long() {
    let mut doubts = Doubts::default();
    let failed = doubts.failed(&handler(Kind::Create, 1), secs(10), &DELAYS, secs(0));
    assert_eq!(failed.pause, Some(secs(100)));
    let event = handler(Kind::Event, 2);
    assert_eq!(doubts.failed(&event, Duration::ZERO, &DELAYS, secs(0)).pause, None);
    assert!(!doubts.rests(&event, secs(0)), "the next event asks it");
    assert_eq!(doubts.failed(&event, secs(10), &DELAYS, secs(0)).pause, Some(secs(100)));
    assert!(doubts.rests(&event, secs(99)));
}

#[test]
fn what_a_cycle_could_decide_is_forgotten() {
    let (mut doubts, create) = (Doubts::default(), handler(Kind::Create, 1));
    doubts.failed(&create, Duration::ZERO, &DELAYS, secs(0));
    doubts.begin();
    assert!(doubts.rests(&create, Duration::from_millis(500)));
    doubts.end(Duration::from_millis(500));
    assert!(!doubts.is_empty());
    doubts.begin();
    doubts.end(secs(1));
    assert!(doubts.is_empty());
}

#[test]
fn a_handler_that_was_edited_is_asked_at_once() {
    let mut doubts = Doubts::default();
    doubts.failed(&handler(Kind::Create, 1), Duration::ZERO, &DELAYS, secs(0));
    assert!(!doubts.rests(&handler(Kind::Create, 2), secs(0)));
}

#[test]
fn an_index_is_filled_when_its_filter_can_be_asked_again() {
    let (mut doubts, index) = (Doubts::default(), handler(Kind::Index, 1));
    doubts.failed(&index, Duration::ZERO, &DELAYS, secs(0));
    doubts.begin();
    doubts.end(Duration::ZERO);
    assert!(doubts.unindexed(Duration::ZERO).is_empty(), "not yet");
    assert_eq!(doubts.pause(Duration::ZERO), Some(secs(1)));
    assert_eq!(doubts.unindexed(secs(1)).len(), 1);
}

#[test]
fn without_pauses_only_another_event_brings_a_handler_back() {
    let (mut doubts, create) = (Doubts::default(), handler(Kind::Create, 1));
    assert_eq!(doubts.failed(&create, Duration::ZERO, &[], secs(0)).pause, None);
    assert_eq!(doubts.pause(secs(0)), None);
    assert!(!doubts.rests(&create, secs(0)));
}

fn change(old: Option<Value>, new: Value) -> Change {
    Change {
        reason: Reason::Update,
        initial: false,
        deleted: false,
        old: old.map(Arc::new),
        new: Arc::new(new),
        diff: Arc::default(),
    }
}

#[test]
fn a_change_is_overtaken_if_others_have_finished_something_that_is_not_stored() {
    let mut doubts = Doubts::default();
    let later = change(None, json!(2));
    assert_eq!(doubts.overtaken(&later), None);
    doubts.settle(&change(None, json!(1)));
    assert_eq!(doubts.overtaken(&later), Some(&Arc::new(json!(1))));
    assert_eq!(doubts.overtaken(&change(Some(json!(0)), json!(1))), None, "it is the same");
    let next = change(Some(json!(1)), json!(2));
    assert_eq!(doubts.overtaken(&next), None, "the next change begins where they have ended");
}
