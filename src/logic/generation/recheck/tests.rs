//! The objects that are checked again: the whole table, and its details.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CATEGORIES, EditEffect, HandlerEdit, NewHandlers, Recheck, effect, has_new, refilled};
use crate::logic::{
    change::{
        registry::{Registry, ResourceHandlers},
        state::State,
    },
    generation::WaitingHandlers,
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::{Callback, Category, Criterion, Handler, Kind},
        outcome::Outcome,
        selector::Selector,
    },
    object::{reason::Reason, resource::Resource},
};

fn handler(kind: Kind, code: u64, options: &[(&str, Value)]) -> Handler {
    let given = options.iter().map(|(key, it)| ((*key).to_owned(), Argument::Value(it.clone())));
    let id = ("id".to_owned(), Argument::Value(json!("it")));
    let mut handler = declare(Declaration {
        kind,
        selectors: vec![Argument::Value(json!("kex"))],
        options: given.chain([id]).collect(),
        function: Function::new(ScriptId(u32::try_from(code).unwrap_or_default()), 0, "it"),
        location: "handlers.lua:1".into(),
    })
    .expect("a handler");
    handler.code = code;
    handler
}

fn registry(handlers: Vec<Handler>) -> Registry {
    Registry::new(handlers).expect("ids are unique")
}

fn of_resource(registry: &Registry) -> ResourceHandlers {
    let resource = Resource { plural: "kex".into(), preferred: true, ..Resource::default() };
    registry.for_resource(&resource, &|_, _| true)
}

fn rechecked(old: Vec<Handler>, new: Vec<Handler>) -> Recheck {
    let (old, new) = (registry(old), registry(new));
    let old_indexes = old.indexes();
    let mut indexes = refilled(&old, &new);
    indexes.extend(new.indexes().into_iter().filter(|it| !old_indexes.contains(it)));
    let (old, new) = (of_resource(&old), of_resource(&new));
    Recheck::between(&old, &new, &indexes)
}

fn nothing() -> Recheck {
    Recheck::default()
}

fn all() -> Recheck {
    Recheck { all: true, ..Recheck::default() }
}

fn all_if_failed() -> Recheck {
    Recheck { all_if_failed: true, ..Recheck::default() }
}

fn running() -> Recheck {
    Recheck { daemons: BTreeSet::from([Arc::from("it")]), ..Recheck::default() }
}

/// Returns the expected result for the only handler of this kind.
fn expected(effect: EditEffect, kind: Kind) -> Recheck {
    match effect {
        EditEffect::IfFailed => all_if_failed(),
        EditEffect::Running => running(),
        EditEffect::Refill | EditEffect::All => all(),
        EditEffect::IfHeld if kind == Kind::Delete => all(),
        EditEffect::Nothing | EditEffect::IfHeld => nothing(),
    }
}

fn kinds(category: Category) -> &'static [Kind] {
    match category {
        Category::Changing => &[Kind::Create, Kind::Update, Kind::Resume, Kind::Delete],
        Category::Watching => &[Kind::Event],
        Category::Spawning => &[Kind::Daemon],
        Category::Indexing => &[Kind::Index],
        Category::Activity | Category::Admission | Category::Conversion => &[],
    }
}

#[test]
fn every_row_of_the_table_holds_and_is_documented() {
    let text = include_str!("mod.rs");
    let labels = [("labels", json!({ "a": "b" }))];
    let mut rows = 0;
    for category in CATEGORIES {
        for edit in [HandlerEdit::Edited, HandlerEdit::Added, HandlerEdit::Removed] {
            let effect = effect(category, edit);
            let name = |it: &dyn std::fmt::Debug| format!("{it:?}").to_lowercase();
            let row = format!("//! | {} | {} | {effect} |", name(&category), name(&edit));
            assert!(text.lines().any(|line| line == row), "not in the documentation: {row}");
            rows += 1;
            for kind in kinds(category) {
                let one = |code| vec![handler(*kind, code, &[])];
                let filtered = vec![handler(*kind, 2, &labels)];
                let edits = match edit {
                    HandlerEdit::Unchanged | HandlerEdit::Edited => vec![(one(1), one(2))],
                    HandlerEdit::Added => vec![(Vec::new(), one(1)), (one(1), filtered)],
                    // Another handler that fills the same index.
                    HandlerEdit::Removed if *kind == Kind::Index => {
                        vec![(vec![handler(*kind, 1, &[]), elsewhere(1)], one(1))]
                    }
                    HandlerEdit::Removed => vec![(one(1), Vec::new())],
                };
                for (old, new) in edits {
                    assert_eq!(rechecked(old, new), expected(effect, *kind), "{kind:?} {edit:?}");
                }
                assert_eq!(rechecked(one(1), one(1)), nothing(), "{kind:?}");
            }
        }
    }
    assert_eq!(
        text.lines().filter(|it| it.starts_with("//! | ")).count(),
        rows + 1,
        "and the head"
    );
}

/// Returns a handler of the same index for another resource.
fn elsewhere(code: u64) -> Handler {
    let mut handler = handler(Kind::Index, code, &[]);
    let selector = handler.selector.as_mut().expect("a selector");
    (selector.any_name, selector.group) = (None, Some("other".into()));
    handler
}

#[test]
fn limits_and_parameters_matter_when_the_handler_is_called_the_next_time() {
    let limits = [("retries", json!(3)), ("param", json!("x"))];
    let old = vec![handler(Kind::Create, 1, &[])];
    assert_eq!(rechecked(old, vec![handler(Kind::Create, 2, &limits)]), all_if_failed());
}

#[test]
fn functions_of_filters_count_as_edited_unless_their_fingerprint_is_the_same() {
    let filtered = |code, script, filters| {
        let mut handler = handler(Kind::Create, code, &[]);
        let function = Function::new(ScriptId(script), 1, "when");
        handler.filters.when = Some(Callback::Function(function));
        handler.parts.filters = filters;
        vec![handler]
    };
    assert_eq!(rechecked(filtered(1, 1, 0), filtered(1, 2, 0)), nothing());
    assert_eq!(rechecked(filtered(1, 1, 0), filtered(2, 2, 0)), all());
    assert_eq!(rechecked(filtered(1, 1, 7), filtered(2, 2, 7)), all_if_failed());
    assert_eq!(rechecked(filtered(1, 1, 7), filtered(2, 2, 8)), all());
    let labelled = |code| {
        let mut all = filtered(code, 1, 7);
        let is_new = code == 2;
        all[0].filters.labels =
            if is_new { vec![("x".into(), Criterion::Present)] } else { vec![] };
        all
    };
    assert_eq!(rechecked(labelled(1), labelled(2)), all(), "computed elsewhere");
}

#[test]
fn an_edited_selector_of_the_same_resource_rechecks_nothing() {
    let chosen = |code| {
        let mut handler = handler(Kind::Create, code, &[]);
        let function =
            Function::new(ScriptId(u32::try_from(code).unwrap_or_default()), 1, "wanted");
        handler.selector = Some(Selector { function: Some(function), ..Selector::default() });
        vec![handler]
    };
    assert_eq!(rechecked(chosen(1), chosen(2)), all_if_failed());
}

#[test]
fn a_handler_that_no_longer_needs_the_finalizer_releases_all_objects() {
    let delete = |options: &[(&str, Value)]| vec![handler(Kind::Delete, 1, options)];
    let optional = [("optional", json!(true))];
    assert_eq!(rechecked(delete(&[]), Vec::new()), all());
    assert_eq!(rechecked(delete(&optional), Vec::new()), nothing());
    let edited = |options: &[(&str, Value)]| vec![handler(Kind::Delete, 2, options)];
    assert_eq!(rechecked(delete(&[]), edited(&optional)), all());
    assert_eq!(rechecked(vec![handler(Kind::Create, 1, &[])], Vec::new()), nothing());
}

#[test]
fn daemons_and_timers_are_found_where_they_run() {
    for (kind, options) in [(Kind::Daemon, vec![]), (Kind::Timer, vec![("interval", json!(5))])] {
        let one = |code| vec![handler(kind, code, &options)];
        assert_eq!(rechecked(one(1), one(1)), nothing());
        assert_eq!(rechecked(one(1), one(2)), running());
        assert_eq!(rechecked(one(1), Vec::new()), running());
    }
}

#[test]
fn an_index_is_filled_again_if_any_of_its_handlers_differs() {
    let one = |code| handler(Kind::Index, code, &[]);
    assert_eq!(rechecked(vec![one(1)], vec![one(1)]), nothing());
    assert_eq!(rechecked(vec![one(1)], vec![one(2)]), all());
    assert_eq!(rechecked(vec![one(1)], vec![one(1), elsewhere(1)]), all());
    assert_eq!(rechecked(vec![one(1)], vec![elsewhere(1)]), nothing(), "it is swept");
    let ids =
        refilled(&registry(vec![one(1), elsewhere(1)]), &registry(vec![one(1), elsewhere(2)]));
    assert_eq!(ids, BTreeSet::from([Arc::from("it")]));
}

#[test]
fn only_edited_handlers_are_new() {
    let of = |code| of_resource(&registry(vec![handler(Kind::Event, code, &[])]));
    let none = BTreeSet::new();
    assert!(!has_new(&of(1), &of(1)));
    assert!(has_new(&of(1), &of(2)));
    assert!(NewHandlers::between(&of(1), &of(2), &none).is_empty(), "the objects have been seen");
    let added = NewHandlers::between(&ResourceHandlers::default(), &of(1), &none);
    assert_eq!(added.watching, BTreeSet::from([Arc::from("it")]));
}

/// Returns the state of the handler `it` after a failed attempt that is retried after this delay.
fn put_off(delay: Duration) -> State {
    let it: Arc<str> = Arc::from("it");
    let mut state = State::default();
    state.begin(Reason::Create, [&it], Timestamp::UNIX_EPOCH);
    let outcome = Outcome { delay: Some(delay), ..Outcome::default() };
    state.apply("it", &outcome, Timestamp::UNIX_EPOCH);
    state
}

#[test]
fn a_handler_that_is_edited_while_it_waits_is_found() {
    let (old, new) =
        (Arc::new(handler(Kind::Create, 1, &[])), Arc::new(handler(Kind::Create, 2, &[])));
    let state = put_off(Duration::from_mins(1));
    let mut waiting = WaitingHandlers::default();
    waiting.note(&state, &[Arc::clone(&old)], &[Arc::clone(&old)], Timestamp::UNIX_EPOCH);
    assert!(waiting.edited(&[Arc::clone(&old)]).is_empty());
    assert!(waiting.edited(&[Arc::new(handler(Kind::Update, 2, &[]))]).is_empty(), "another one");
    assert_eq!(waiting.edited(&[Arc::clone(&new)]).len(), 1);
    // The cycle called another handler: this one is still to be retried.
    waiting.note(&state, &[Arc::clone(&new)], &[], Timestamp::UNIX_EPOCH);
    assert_eq!(waiting.edited(&[Arc::clone(&new)]).len(), 1);
    waiting.note(&state, &[Arc::clone(&new)], &[Arc::clone(&new)], Timestamp::UNIX_EPOCH);
    assert!(waiting.edited(&[new]).is_empty(), "it has had its attempt");
}

#[test]
fn a_handler_that_has_ended_or_is_not_selected_does_not_wait() {
    let handler = Arc::new(handler(Kind::Create, 1, &[]));
    let state = put_off(Duration::from_mins(1));
    let mut waiting = WaitingHandlers::default();
    waiting.note(&state, &[Arc::clone(&handler)], &[], Timestamp::UNIX_EPOCH);
    assert!(!waiting.is_empty());
    let later = Timestamp::from_second(61).expect("a time");
    waiting.note(&state, &[Arc::clone(&handler)], &[], later);
    assert!(waiting.is_empty());
    waiting.note(&state, &[], &[], Timestamp::UNIX_EPOCH);
    assert!(waiting.is_empty());
}
