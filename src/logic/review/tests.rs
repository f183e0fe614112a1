//! Claims about reviews: one for each line of the table, and what must not cause one.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{News, Review, has_news, refilled, review};
use crate::logic::{
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
    handler::{Callback, Handler, Kind},
    registry::{Registry, ResourceHandlers},
    resource::Resource,
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
fn functions_of_filters_are_new_with_their_script_unless_nothing_was_edited() {
    let filtered = |code, script| {
        let mut handler = handler(Kind::Create, code, &[]);
        let function = Function::new(ScriptId(script), 1, "when");
        handler.filters.when = Some(Callback::Function(function));
        vec![handler]
    };
    assert_eq!(reviewed(filtered(1, 1), filtered(1, 2)), Review::Nobody);
    assert_eq!(reviewed(filtered(1, 1), filtered(2, 2)), Review::Everybody);
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
