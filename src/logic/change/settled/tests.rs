//! What is recognized as settled, and that a cycle would see it in the same way.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::logic::{
    change::{cause, settle},
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::{Category, Kind},
    },
    object::reason::{EventType, Reason},
};
use crate::settings::{HiddenFields, PREFIX, ProgressStorage};

fn handlers(all: &[(Kind, Value)]) -> ResourceHandlers {
    let mut handlers = ResourceHandlers::default();
    for (kind, options) in all {
        let options = options.as_object().into_iter().flatten();
        let declaration = Declaration {
            kind: *kind,
            selectors: vec![Argument::Value("kopfexamples".into())],
            options: options.map(|(key, it)| (key.clone(), Argument::Value(it.clone()))).collect(),
            function: Function::new(ScriptId(1), 1, "f"),
            location: "test:1".into(),
        };
        let handler = declare(declaration).expect("a valid declaration");
        handlers.extra_fields.extend(handler.filters.field.clone());
        let ResourceHandlers { watching, indexing, spawning, changing, .. } = &mut handlers;
        let lists = [
            (Category::Watching, watching),
            (Category::Indexing, indexing),
            (Category::Spawning, spawning),
            (Category::Changing, changing),
        ];
        let list = lists.into_iter().find(|(it, _)| *it == kind.category()).expect("a list");
        list.1.push(handler.into());
    }
    handlers
}

fn created() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {
            "name": "a", "resourceVersion": "5",
            "labels": {"app": "x"}, "annotations": {"other.org/a": "b"},
        },
        "spec": {"ratio": 0.5, "list": [1, null, {"a": {}}], "none": null, "map": {}},
        "data": {},
    })
}

/// Returns the essence of a new object, and the object as it is after its handling.
fn handled(persistence: &PersistenceSettings, mut body: Value) -> (Value, Value) {
    let change = examined(persistence, &body);
    let mut patch = Map::new();
    settle::remember(persistence, &body, &change, &mut patch);
    for (name, text) in patch["metadata"]["annotations"].as_object().expect("annotations") {
        body["metadata"]["annotations"][name] = text.clone();
    }
    body["status"] = json!({"f": {"name": "a"}});
    (Value::clone(&change.new), body)
}

fn examined(persistence: &PersistenceSettings, body: &Value) -> cause::Change {
    let (object, modified) = (Object::from_value(body.clone()), Some(EventType::Modified));
    cause::examine(persistence, &object, modified, false, &BTreeSet::new()).expect("no damage")
}

fn is_settled_with(handlers: &[(Kind, Value)], (essence, body): &(Value, Value)) -> bool {
    let object = Object::parse(body.to_string().into()).expect("an object");
    is_settled(&PersistenceSettings::default(), &self::handlers(handlers), &object, essence)
}

fn with_prefix(prefix: &str) -> PersistenceSettings {
    let mut persistence = PersistenceSettings::default();
    if let DiffBaseStorage::Annotations(own) = &mut persistence.diffbase_storage {
        prefix.clone_into(&mut own.prefix);
    }
    if let ProgressStorage::Smart(own, _) = &mut persistence.progress_storage {
        prefix.clone_into(&mut own.prefix);
    }
    persistence
}

#[test]
fn a_handled_object_is_settled_and_no_change() {
    let handlers =
        handlers(&[(Kind::Create, json!({})), (Kind::Update, json!({"labels": {"app": "x"}}))]);
    for prefix in [PREFIX, "example.com"] {
        let persistence = with_prefix(prefix);
        let plain = json!({"kind": "K", "metadata": {"name": "a", "annotations": {}}, "spec": {}});
        for body in [created(), plain] {
            let (essence, body) = handled(&persistence, body);
            let object = Object::parse(body.to_string().into()).expect("an object");
            assert!(is_settled(&persistence, &handlers, &object, &essence), "{prefix} {body}");
            assert_eq!(examined(&persistence, &body).reason, Reason::Noop);
        }
    }
}

#[test]
fn whatever_a_cycle_may_react_to_is_not_settled() {
    let (essence, body) = handled(&PersistenceSettings::default(), created());
    let own = format!("{PREFIX}/f");
    let suspended = format!("{PREFIX}/kopf-suspended");
    let stored = format!("{PREFIX}/last-handled-configuration");
    for (pointer, key, value) in [
        ("/spec", "ratio", json!(0.75)),
        ("/spec", "new", Value::Null),
        ("/spec/map", "new", json!(1)),
        ("/spec/list/2/a", "new", json!(1)),
        ("", "extra", json!({})),
        ("", "data", Value::Null),
        ("", "kind", json!("ReplicaSet")),
        ("/metadata", "labels", json!({})),
        ("/metadata/labels", "app", json!("y")),
        ("/metadata/labels", "new", json!("")),
        ("/metadata/annotations", "other.org/new", json!("")),
        ("/metadata/annotations", "other.org/a", json!("c")),
        ("/metadata/annotations", &own, json!("{}")),
        ("/metadata/annotations", &suspended, json!("")),
        ("/metadata/annotations", &stored, json!("{\"spec\":{}}\n")),
        ("/metadata", "finalizers", json!(["kopf.zalando.org/KopfFinalizerMarker"])),
        ("/metadata", "deletionTimestamp", json!("2026-01-01T00:00:00Z")),
    ] {
        let mut changed = body.clone();
        changed.pointer_mut(pointer).expect(pointer)[key] = value;
        let is_settled = is_settled_with(&[(Kind::Create, json!({}))], &(essence.clone(), changed));
        assert!(!is_settled, "{pointer} {key}");
    }
    for key in ["spec", "data"] {
        let mut changed = body.clone();
        changed.as_object_mut().expect("a map").shift_remove(key);
        assert!(!is_settled_with(&[(Kind::Create, json!({}))], &(essence.clone(), changed)));
    }
}

#[test]
fn changes_of_the_status_and_of_other_metadata_are_none() {
    let (essence, mut body) = handled(&PersistenceSettings::default(), created());
    body["status"] = json!({"x": 1});
    body["metadata"]["ownerReferences"] = json!([{"kind": "K"}]);
    body["metadata"]["finalizers"] = json!(["other.org/finalizer"]);
    body["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    assert!(is_settled_with(&[(Kind::Create, json!({}))], &(essence, body.clone())));
    assert_eq!(examined(&PersistenceSettings::default(), &body).reason, Reason::Noop);
}

#[test]
fn handlers_that_see_more_than_changes_need_a_cycle() {
    let both = handled(&PersistenceSettings::default(), created());
    assert!(is_settled_with(&[(Kind::Field, json!({"field": "spec.ratio"}))], &both));
    for (kind, options) in [
        (Kind::Event, json!({})),
        (Kind::Index, json!({})),
        (Kind::Daemon, json!({})),
        (Kind::Field, json!({"field": "status.x"})),
        (Kind::Field, json!({"field": "metadata.name"})),
        // It needs the finalizer.
        (Kind::Delete, json!({})),
    ] {
        assert!(!is_settled_with(&[(Kind::Create, json!({})), (kind, options)], &both), "{kind:?}");
    }
}

#[test]
fn the_finalizer_is_there_exactly_if_it_must_be() {
    let (essence, mut body) = handled(&PersistenceSettings::default(), created());
    body["metadata"]["finalizers"] = json!(["kopf.zalando.org/KopfFinalizerMarker"]);
    let both = (essence, body);
    assert!(is_settled_with(&[(Kind::Delete, json!({}))], &both));
    assert!(!is_settled_with(&[(Kind::Delete, json!({"optional": true}))], &both));
    // Its filter decides whether the finalizer is needed.
    assert!(!is_settled_with(&[(Kind::Delete, json!({"labels": {"app": "x"}}))], &both));
}

#[test]
fn hidden_fields_need_a_cycle() {
    let (essence, body) = handled(&PersistenceSettings::default(), created());
    let object = Object::parse(body.to_string().into()).expect("an object");
    let hidden = PersistenceSettings {
        hidden: Some(HiddenFields { paths: Vec::new(), key: None }.into()),
        ..PersistenceSettings::default()
    };
    let all = handlers(&[(Kind::Create, json!({}))]);
    assert!(is_settled(&PersistenceSettings::default(), &all, &object, &essence));
    assert!(!is_settled(&hidden, &all, &object, &essence));
}
