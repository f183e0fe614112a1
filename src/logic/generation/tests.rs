//! The handlers that an edit adds, changes and removes.

use serde_json::json;

use super::{Changes, Handler, Registry};
use crate::logic::handlers::{
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
    handler::Kind,
    selector::Selector,
};

/// Returns a handler of script number `script`; its code is a number.
fn handler(script: u32, kind: Kind, id: &str, code: u64) -> Handler {
    let mut handler = declare(Declaration {
        kind,
        selectors: vec![Argument::Value(json!("kex"))],
        options: vec![("id".to_owned(), Argument::Value(json!(id)))],
        function: Function::new(ScriptId(script), 0, id),
        location: format!("handlers.lua:{script}"),
    })
    .expect("a handler");
    handler.code = code;
    handler
}

fn changes(old: Vec<Handler>, new: Vec<Handler>) -> String {
    let registry = |handlers| Registry::new(handlers).expect("ids are unique");
    Changes::between(&registry(old), &registry(new)).to_string()
}

#[test]
fn a_script_that_is_loaded_again_changes_nothing_by_that() {
    let old = vec![handler(1, Kind::Create, "a", 5), handler(1, Kind::Timer, "b", 6)];
    let new = vec![handler(2, Kind::Timer, "b", 6), handler(2, Kind::Create, "a", 5)];
    assert_eq!(changes(old, new), "no handler differs");
}

#[test]
fn edited_added_and_removed_handlers_are_named_by_declaration_and_id() {
    let old = vec![handler(1, Kind::Create, "a", 5), handler(1, Kind::Daemon, "b", 6)];
    let new = vec![
        handler(2, Kind::Update, "a", 5),
        handler(2, Kind::Create, "a", 7),
        handler(2, Kind::Event, "c", 1),
    ];
    let told = "added on_update 'a', on_event 'c'; changed on_create 'a'; removed daemon 'b'";
    assert_eq!(changes(old, new), told);
}

#[test]
fn many_differences_are_counted() {
    let many = (0..22).map(|it| handler(1, Kind::Event, &format!("h{it}"), 5)).collect();
    let told = changes(Vec::new(), many);
    assert!(told.starts_with("added on_event 'h0', on_event 'h1',"), "{told}");
    assert!(told.ends_with("on_event 'h19', and 2 more"), "{told}");
}

#[test]
fn unknown_code_counts_as_edited_unless_it_is_the_same_function() {
    let one = || vec![handler(1, Kind::Create, "a", 0)];
    assert_eq!(changes(one(), one()), "no handler differs");
    assert_eq!(changes(one(), vec![handler(2, Kind::Create, "a", 0)]), "changed on_create 'a'");
}

#[test]
fn an_unchanged_selector_function_is_no_change() {
    let chosen = |script, code| {
        let mut handler = handler(script, Kind::Create, "a", code);
        let function = Function::new(ScriptId(script), 1, "wanted");
        handler.selector = Some(Selector { function: Some(function), ..Selector::default() });
        handler
    };
    assert_eq!(changes(vec![chosen(1, 5)], vec![chosen(2, 5)]), "no handler differs");
    assert_eq!(changes(vec![chosen(1, 5)], vec![chosen(2, 6)]), "changed on_create 'a'");
    let named = handler(2, Kind::Create, "a", 5);
    let told = "added on_create 'a'; removed on_create 'a'";
    assert_eq!(changes(vec![chosen(1, 5)], vec![named]), told);
}

#[test]
fn another_selector_is_another_handler() {
    let mut other = handler(2, Kind::Create, "a", 5);
    other.selector = None;
    let told = "added on_create 'a'; removed on_create 'a'";
    assert_eq!(changes(vec![handler(1, Kind::Create, "a", 5)], vec![other]), told);
}
