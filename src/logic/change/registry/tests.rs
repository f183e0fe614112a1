//! Registries: cases that the vectors do not cover.

use serde_json::{Value, json};

use super::*;
use crate::logic::handlers::{
    declare::{Argument, Declaration, declare},
    function::{Function, ScriptId},
};

fn handler(kind: Kind, slot: u32, resource: &[&str], field: Value) -> Handler {
    declare(Declaration {
        kind,
        selectors: resource.iter().map(|it| Argument::Value(json!(it))).collect(),
        options: vec![("field".to_owned(), Argument::Value(field))],
        function: Function::new(ScriptId(0), slot, "fn"),
        location: format!("handlers.lua:{slot}"),
    })
    .expect("a handler")
}

fn on(kind: Kind, slot: u32) -> Handler {
    handler(kind, slot, &["kopf.dev", "kex"], Value::Null)
}

#[test]
fn two_functions_with_one_id_are_rejected_with_both_locations() {
    let error = Registry::new(vec![on(Kind::Create, 1), on(Kind::Create, 2)]).expect_err("a clash");
    assert_eq!(
        error.to_string(),
        "two functions of on_create for one resource have the id 'fn', at handlers.lua:1 and at handlers.lua:2: \
         give one of them an `id`"
    );
}

#[test]
fn one_function_may_be_declared_many_times() {
    let handlers = vec![on(Kind::Create, 1), on(Kind::Create, 1), on(Kind::Resume, 1)];
    assert_eq!(Registry::new(handlers).expect("a registry").handlers().len(), 3);
}

#[test]
fn one_id_may_name_functions_of_different_causes_or_resources() {
    let other = handler(Kind::Create, 3, &["pods"], Value::Null);
    assert!(Registry::new(vec![on(Kind::Create, 1), on(Kind::Update, 2), other]).is_ok());
}

#[test]
fn a_selector_without_a_group_needs_all_groups() {
    let grouped = Registry::new(vec![on(Kind::Create, 1)]).expect("a registry");
    assert_eq!(grouped.groups(), Some(BTreeSet::from(["kopf.dev".to_owned()])));
    let ungrouped = handler(Kind::Event, 2, &["pods"], Value::Null);
    let mixed = Registry::new(vec![on(Kind::Create, 1), ungrouped]).expect("a registry");
    assert_eq!(mixed.groups(), None);
}

#[test]
fn indexed_fields_do_not_belong_to_the_essence() {
    let of = |kind, slot, field: &str| handler(kind, slot, &["kopf.dev", "kex"], json!(field));
    let handlers = vec![of(Kind::Event, 1, "a"), of(Kind::Daemon, 2, "b"), of(Kind::Index, 3, "c")];
    let resource = Resource {
        group: "kopf.dev".to_owned(),
        plural: "kex".to_owned(),
        preferred: true,
        ..Resource::default()
    };
    let registry = Registry::new(handlers).expect("a registry");
    let found = registry.for_resource(&resource, &|_, _| false);
    assert_eq!(found.extra_fields, BTreeSet::from([vec!["a".to_owned()], vec!["b".to_owned()]]));
    assert_eq!(found.indexing.len(), 1);
}
