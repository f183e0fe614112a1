//! Serialization and combination of sets of fields, as on the real server.

use serde_json::{Value, json};

use crate::managed::{element::Element, set::FieldSet, zero};

fn set(json: &Value) -> FieldSet {
    FieldSet::from_json(json).unwrap()
}

#[test]
fn a_set_is_serialized_as_it_was_parsed() {
    let json = json!({ "f:spec": {
        ".": {},
        "f:a": {},
        "f:list": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } },
        "f:set": { "v:1": {}, "v:\"x\"": {} },
        "f:at": { "i:3": {} },
    } });
    assert_eq!(set(&json).to_json(), json);
}

#[test]
fn elements_are_ordered_by_kind_and_numbers_by_value() {
    let json = json!({
        "i:2": {}, "i:10": {}, "v:20": {}, "v:\"a\"": {}, "v:3": {}, "v:true": {},
        "k:{\"port\":443}": {}, "k:{\"port\":80}": {}, "f:b": {}, "f:a": {},
    });
    let written = set(&json).to_json();
    let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "f:a",
            "f:b",
            "k:{\"port\":80}",
            "k:{\"port\":443}",
            "v:3",
            "v:20",
            "v:\"a\"",
            "v:true",
            "i:2",
            "i:10",
        ]
    );
}

#[test]
fn the_fields_of_a_key_are_sorted() {
    let key = Element::key(vec![("protocol".into(), "TCP".into()), ("port".into(), 80.into())]);
    assert_eq!(key.text(), r#"k:{"port":80,"protocol":"TCP"}"#);
    assert_eq!(key.to_string(), r#"[port=80,protocol="TCP"]"#);
}

#[test]
fn the_dot_comes_first() {
    let mut all = set(&json!({ "f:a": { "f:b": {} } }));
    all.extend(set(&json!({ "f:a": {} })));
    assert_eq!(all.to_json().to_string(), r#"{"f:a":{".":{},"f:b":{}}}"#);
}

#[test]
fn a_field_differs_from_the_fields_below_it() {
    let field = set(&json!({ "f:a": {} }));
    let below = set(&json!({ "f:a": { "f:b": {} } }));
    let both = set(&json!({ "f:a": { ".": {}, "f:b": {} } }));
    assert_eq!(field.union(&below), both);
    assert_eq!(both.difference(&field), below);
    assert_eq!(both.difference(&below), field);
    assert!(field.intersection(&below).is_empty());
    assert_eq!(both.intersection(&below), below);
    assert!(both.difference(&both).is_empty());
}

#[test]
fn paths_of_a_level_come_before_those_below_it() {
    let all = set(
        &json!({ "f:a": { "f:x": {} }, "f:b": {}, "f:c": { "v:\"q\"": { ".": {}, "f:y": {} } } }),
    );
    assert_eq!(all.paths(), [".b", ".a.x", ".c[=\"q\"]", ".c[=\"q\"].y"]);
}

#[test]
fn unknown_kinds_of_elements_are_skipped_and_invalid_ones_refused() {
    assert_eq!(
        set(&json!({ "f:a": { "z:future": {}, "f:b": {} } })),
        set(&json!({ "f:a": { "f:b": {} } }))
    );
    for broken in ["nocolon", "k:nonjson", "k:[]", "v:{", "i:x"] {
        assert!(FieldSet::from_json(&json!({ broken: {} })).is_none(), "{broken}");
    }
    assert!(FieldSet::from_json(&json!([])).is_none());
    assert!(FieldSet::from_json(&json!({ "f:a": 1 })).is_none());
}

#[test]
fn sets_that_are_too_deep_are_refused() {
    let mut json = json!({});
    for _ in 0..1000 {
        json = json!({ "f:a": json });
    }
    assert!(FieldSet::from_json(&json).is_none());
}

#[test]
fn numbers_are_compared_by_value() {
    let one = set(&json!({ "v:1": {} }));
    assert_eq!(one, set(&json!({ "v:1.0": {} })));
    let large = set(&json!({ "v:18446744073709551615": {} }));
    assert_ne!(large, set(&json!({ "v:18446744073709551614": {} })));
}

#[test]
fn zero_values_of_native_kinds_are_known() {
    assert_eq!(zero::of("apps/v1", "Deployment").unwrap()["spec"]["strategy"], json!({}));
    assert_eq!(zero::of("v1", "Event").unwrap()["source"], json!({}));
    assert_eq!(zero::of("events.k8s.io/v1", "Event").unwrap()["regarding"], json!({}));
    assert_eq!(zero::of("v1", "ConfigMap"), Some(&json!({})));
    assert_eq!(zero::of("x.io/v1", "Deployment"), None);
    assert_eq!(zero::of("gateway.networking.k8s.io/v1", "Ingress"), None);
}
