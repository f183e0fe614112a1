//! Claims about reviews: one for each line of the table, and what must not cause one.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{News, Review, Waiting, has_news, refilled, review};
use crate::logic::{
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
    handler::{Callback, Criterion, Handler, Kind},
    outcome::Outcome,
    reason::Reason,
    registry::{Registry, ResourceHandlers},
    resource::Resource,
    selector::Selector,
    state::State,
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

fn reviewed(old: Vec<Handler>, new: Vec<Handler>) -> Review {
    let (old, new) = (registry(old), registry(new));
    let old_indexes = old.indexes();
    let mut indexes = refilled(&old, &new);
    indexes.extend(new.indexes().into_iter().filter(|it| !old_indexes.contains(it)));
    let (old, new) = (of_resource(&old), of_resource(&new));
    review(&old, &new, &News::between(&old, &new, &indexes))
}

fn attended() -> Review {
    Review::Attended(BTreeSet::from([Arc::from("it")]))
}

#[test]
fn the_code_of_a_handler_matters_when_it_is_called_the_next_time() {
    for kind in [Kind::Create, Kind::Update, Kind::Resume, Kind::Delete, Kind::Event] {
        let edited = reviewed(vec![handler(kind, 1, &[])], vec![handler(kind, 2, &[])]);
        assert_eq!(edited, Review::Nobody, "{kind:?}");
    }
    let limits = [("retries", json!(3)), ("param", json!("x"))];
    let old = vec![handler(Kind::Create, 1, &[])];
    assert_eq!(reviewed(old, vec![handler(Kind::Create, 2, &limits)]), Review::Nobody);
}

#[test]
fn what_is_added_or_wants_other_objects_sees_all() {
    for kind in [Kind::Create, Kind::Delete, Kind::Event, Kind::Daemon, Kind::Index] {
        assert_eq!(
            reviewed(Vec::new(), vec![handler(kind, 1, &[])]),
            Review::Everybody,
            "{kind:?}"
        );
        let labels = [("labels", json!({ "a": "b" }))];
        let filtered = vec![handler(kind, 2, &labels)];
        assert_eq!(reviewed(vec![handler(kind, 1, &[])], filtered), Review::Everybody, "{kind:?}");
    }
}

#[test]
fn functions_of_filters_are_new_with_their_script_unless_they_were_not_edited() {
    let filtered = |code, script, filters| {
        let mut handler = handler(Kind::Create, code, &[]);
        let function = Function::new(ScriptId(script), 1, "when");
        handler.filters.when = Some(Callback::Function(function));
        handler.parts.filters = filters;
        vec![handler]
    };
    assert_eq!(reviewed(filtered(1, 1, 0), filtered(1, 2, 0)), Review::Nobody);
    assert_eq!(reviewed(filtered(1, 1, 0), filtered(2, 2, 0)), Review::Everybody);
    assert_eq!(reviewed(filtered(1, 1, 7), filtered(2, 2, 7)), Review::Nobody);
    assert_eq!(reviewed(filtered(1, 1, 7), filtered(2, 2, 8)), Review::Everybody);
    let labelled = |code| {
        let mut all = filtered(code, 1, 7);
        let is_new = code == 2;
        all[0].filters.labels =
            if is_new { vec![("x".into(), Criterion::Present)] } else { vec![] };
        all
    };
    assert_eq!(reviewed(labelled(1), labelled(2)), Review::Everybody, "computed elsewhere");
}

#[test]
fn a_resource_that_an_edited_function_still_selects_is_not_looked_at_again() {
    let chosen = |code| {
        let mut handler = handler(Kind::Create, code, &[]);
        let function =
            Function::new(ScriptId(u32::try_from(code).unwrap_or_default()), 1, "wanted");
        handler.selector = Some(Selector { function: Some(function), ..Selector::default() });
        vec![handler]
    };
    assert_eq!(reviewed(chosen(1), chosen(2)), Review::Nobody);
}

#[test]
fn who_needs_the_finalizer_no_more_lets_objects_go() {
    let delete = |options: &[(&str, Value)]| vec![handler(Kind::Delete, 1, options)];
    let optional = [("optional", json!(true))];
    assert_eq!(reviewed(delete(&[]), Vec::new()), Review::Everybody);
    assert_eq!(reviewed(delete(&optional), Vec::new()), Review::Nobody);
    let edited = |options: &[(&str, Value)]| vec![handler(Kind::Delete, 2, options)];
    assert_eq!(reviewed(delete(&[]), edited(&optional)), Review::Everybody);
    assert_eq!(reviewed(vec![handler(Kind::Create, 1, &[])], Vec::new()), Review::Nobody);
}

#[test]
fn daemons_and_timers_are_found_where_they_run() {
    for (kind, options) in [(Kind::Daemon, vec![]), (Kind::Timer, vec![("interval", json!(5))])] {
        let one = |code| vec![handler(kind, code, &options)];
        assert_eq!(reviewed(one(1), one(1)), Review::Nobody);
        assert_eq!(reviewed(one(1), one(2)), attended());
        assert_eq!(reviewed(one(1), Vec::new()), attended());
    }
}

#[test]
fn an_index_is_filled_anew_if_any_of_its_handlers_differs() {
    let one = |code| handler(Kind::Index, code, &[]);
    let elsewhere = |code| {
        let mut handler = one(code);
        handler.selector.as_mut().expect("a selector").any_name = None;
        handler.selector.as_mut().expect("a selector").group = Some("other".into());
        handler
    };
    assert_eq!(reviewed(vec![one(1)], vec![one(1)]), Review::Nobody);
    assert_eq!(reviewed(vec![one(1)], vec![one(2)]), Review::Everybody);
    assert_eq!(reviewed(vec![one(1)], vec![one(1), elsewhere(1)]), Review::Everybody);
    assert_eq!(reviewed(vec![one(1)], vec![elsewhere(1)]), Review::Nobody, "it is swept");
    let ids =
        refilled(&registry(vec![one(1), elsewhere(1)]), &registry(vec![one(1), elsewhere(2)]));
    assert_eq!(ids, BTreeSet::from([Arc::from("it")]));
}

#[test]
fn only_what_was_edited_is_news() {
    let of = |code| of_resource(&registry(vec![handler(Kind::Event, code, &[])]));
    let none = BTreeSet::new();
    assert!(!has_news(&of(1), &of(1)));
    assert!(has_news(&of(1), &of(2)));
    assert!(News::between(&of(1), &of(2), &none).is_empty(), "the objects have been seen");
    let added = News::between(&ResourceHandlers::default(), &of(1), &none);
    assert_eq!(added.watching, BTreeSet::from([Arc::from("it")]));
}

/// The state of the handler `it` after an attempt that has failed, to be repeated after this time.
fn put_off(delay: Duration) -> State {
    let it: Arc<str> = Arc::from("it");
    let mut state = State::default();
    state.begin(Reason::Create, [&it], Timestamp::UNIX_EPOCH);
    let outcome = Outcome { delay: Some(delay), ..Outcome::default() };
    state.apply("it", &outcome, Timestamp::UNIX_EPOCH);
    state
}

#[test]
fn who_is_edited_while_it_waits_is_told_apart_from_who_is_not() {
    let (old, new) =
        (Arc::new(handler(Kind::Create, 1, &[])), Arc::new(handler(Kind::Create, 2, &[])));
    let state = put_off(Duration::from_mins(1));
    let mut waiting = Waiting::default();
    waiting.note(&state, &[Arc::clone(&old)], &[Arc::clone(&old)], Timestamp::UNIX_EPOCH);
    assert!(waiting.edited(&[Arc::clone(&old)]).is_empty());
    assert!(waiting.edited(&[Arc::new(handler(Kind::Update, 2, &[]))]).is_empty(), "another one");
    assert_eq!(waiting.edited(&[Arc::clone(&new)]).len(), 1);
    // Another one was called in the cycle: it still is to be tried.
    waiting.note(&state, &[Arc::clone(&new)], &[], Timestamp::UNIX_EPOCH);
    assert_eq!(waiting.edited(&[Arc::clone(&new)]).len(), 1);
    waiting.note(&state, &[Arc::clone(&new)], &[Arc::clone(&new)], Timestamp::UNIX_EPOCH);
    assert!(waiting.edited(&[new]).is_empty(), "it has had its attempt");
}

#[test]
fn who_has_ended_or_is_not_selected_any_more_waits_for_nothing() {
    let handler = Arc::new(handler(Kind::Create, 1, &[]));
    let state = put_off(Duration::from_mins(1));
    let mut waiting = Waiting::default();
    waiting.note(&state, &[Arc::clone(&handler)], &[], Timestamp::UNIX_EPOCH);
    assert!(!waiting.is_empty());
    let later = Timestamp::from_second(61).expect("a time");
    waiting.note(&state, &[Arc::clone(&handler)], &[], later);
    assert!(waiting.is_empty());
    waiting.note(&state, &[], &[], Timestamp::UNIX_EPOCH);
    assert!(waiting.is_empty());
}
