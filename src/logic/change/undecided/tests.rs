//! Pauses of filters that fail, and when they end.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{FilterFailure, Undecided};
use crate::logic::{
    change::cause::Change,
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::{Handler, Kind},
    },
    object::reason::Reason,
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
    let (mut undecided, create) = (Undecided::default(), handler(Kind::Create, 1));
    for (now, pause, attempt) in [(0, 1, 1), (1, 5, 2), (6, 5, 3)] {
        undecided.begin();
        assert!(!undecided.rests(&create, secs(now)));
        let failed = undecided.failed(&create, Duration::ZERO, &DELAYS, secs(now));
        assert_eq!(failed, FilterFailure { attempt, pause: Some(secs(pause)) });
        undecided.end(secs(now));
        assert_eq!(undecided.pause(secs(now)), Some(secs(pause)));
    }
}

#[test]
fn a_slow_filter_pauses_for_ten_times_its_duration() {
    let mut undecided = Undecided::default();
    let failed = undecided.failed(&handler(Kind::Create, 1), secs(10), &DELAYS, secs(0));
    assert_eq!(failed.pause, Some(secs(100)));
    let event = handler(Kind::Event, 2);
    assert_eq!(undecided.failed(&event, Duration::ZERO, &DELAYS, secs(0)).pause, None);
    assert!(!undecided.rests(&event, secs(0)), "the next event asks it");
    assert_eq!(undecided.failed(&event, secs(10), &DELAYS, secs(0)).pause, Some(secs(100)));
    assert!(undecided.rests(&event, secs(99)));
}

#[test]
fn decided_handlers_are_forgotten() {
    let (mut undecided, create) = (Undecided::default(), handler(Kind::Create, 1));
    undecided.failed(&create, Duration::ZERO, &DELAYS, secs(0));
    undecided.begin();
    assert!(undecided.rests(&create, Duration::from_millis(500)));
    undecided.end(Duration::from_millis(500));
    assert!(!undecided.is_empty());
    undecided.begin();
    undecided.end(secs(1));
    assert!(undecided.is_empty());
}

#[test]
fn a_handler_that_was_edited_is_asked_at_once() {
    let mut undecided = Undecided::default();
    undecided.failed(&handler(Kind::Create, 1), Duration::ZERO, &DELAYS, secs(0));
    assert!(!undecided.rests(&handler(Kind::Create, 2), secs(0)));
}

#[test]
fn an_index_is_filled_when_its_filter_can_be_asked_again() {
    let (mut undecided, index) = (Undecided::default(), handler(Kind::Index, 1));
    undecided.failed(&index, Duration::ZERO, &DELAYS, secs(0));
    undecided.begin();
    undecided.end(Duration::ZERO);
    assert!(undecided.unindexed(Duration::ZERO).is_empty(), "not yet");
    assert_eq!(undecided.pause(Duration::ZERO), Some(secs(1)));
    assert_eq!(undecided.unindexed(secs(1)).len(), 1);
}

#[test]
fn without_pauses_only_another_event_brings_a_handler_back() {
    let (mut undecided, create) = (Undecided::default(), handler(Kind::Create, 1));
    assert_eq!(undecided.failed(&create, Duration::ZERO, &[], secs(0)).pause, None);
    assert_eq!(undecided.pause(secs(0)), None);
    assert!(!undecided.rests(&create, secs(0)));
}

fn change(old: Option<Value>, new: Value) -> Change {
    Change {
        has_hidden: false,
        reason: Reason::Update,
        initial: false,
        deleted: false,
        old: old.map(Arc::new),
        new: Arc::new(new),
        diff: Arc::default(),
    }
}

#[test]
fn a_change_is_overtaken_if_others_have_finished_one_that_is_not_stored() {
    let mut undecided = Undecided::default();
    let later = change(None, json!(2));
    assert_eq!(undecided.overtaken(&later), None);
    undecided.settle(&change(None, json!(1)));
    assert_eq!(undecided.overtaken(&later), Some(&Arc::new(json!(1))));
    assert_eq!(undecided.overtaken(&change(Some(json!(0)), json!(1))), None, "it is the same");
    let next = change(Some(json!(1)), json!(2));
    assert_eq!(undecided.overtaken(&next), None, "the next change begins where they have ended");
}
