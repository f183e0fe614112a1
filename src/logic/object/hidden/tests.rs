//! Values that are hidden, and diffs that still show where something has changed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{is_exposed, loggable, loggable_diff, masked, readable, readable_diff, revealed};
use crate::logic::object::diff;
use crate::settings::{DigestKey, HiddenFields, PersistenceSettings};

fn persistence(key: Option<&str>) -> PersistenceSettings {
    let key = key.map(|it| Arc::new(DigestKey::new(it.as_bytes().to_vec(), it)));
    let paths = vec![vec!["data".to_owned()], vec!["spec".to_owned(), "password".to_owned()]];
    PersistenceSettings {
        hidden: Some(Arc::new(HiddenFields { paths, key })),
        ..PersistenceSettings::default()
    }
}

fn body(uid: &str) -> Value {
    json!({ "metadata": { "uid": uid } })
}

/// Masks the old essence and compares it with the new one: `operation path old`.
fn changes(old: &Value, new: &Value) -> Vec<String> {
    let (persistence, body) = (persistence(Some("k")), body("u"));
    let stored = masked(&persistence, &body, old).expect("fields are hidden");
    let text = stored.to_string();
    assert!(!text.contains("hunter") && !is_exposed(&persistence, &stored), "{text}");
    let old = revealed(&persistence, &body, stored, new);
    let diff = readable_diff(&diff::diff(&old, new));
    let item = |it: &diff::DiffItem| {
        format!("{} {} {}", it.operation.as_str(), it.field.join("."), it.old)
    };
    diff.iter().map(item).collect()
}

#[test]
fn diffs_have_their_paths_and_old_values_read_as_null() {
    let old =
        json!({ "data": { "a": "hunter1", "b": "hunter2", "c": ["hunter3"] }, "type": "Opaque" });
    assert_eq!(changes(&old, &old), [] as [&str; 0]);
    let new = json!({ "data": { "a": "hunter9", "c": ["hunter3"], "d": "x" }, "type": "tls" });
    let mut found = changes(&old, &new);
    found.sort();
    assert_eq!(
        found,
        ["add data.d null", "change data.a null", r#"change type "Opaque""#, "remove data.b null"]
    );
    assert_eq!(
        changes(&old, &json!({ "type": "Opaque" })),
        [r#"remove data {"a":null,"b":null,"c":null}"#]
    );
    assert_eq!(changes(&json!({}), &json!({ "data": { "a": "hunter1" } })), ["add data null"]);
}

#[test]
fn plain_values_of_an_earlier_operator_are_compared_and_known_as_exposed() {
    let (persistence, body) = (persistence(Some("k")), body("u"));
    let plain = json!({ "data": { "a": "hunter1" } });
    assert!(is_exposed(&persistence, &plain));
    assert_eq!(revealed(&persistence, &body, plain.clone(), &plain), plain);
    let new = json!({ "data": { "a": "hunter2" } });
    let old = revealed(&persistence, &body, plain, &new);
    assert_eq!(readable(&old), json!({ "data": { "a": null } }), "as after a digest");
}

#[test]
fn equal_values_have_different_digests_in_each_place_object_and_key() {
    let essence = json!({ "data": { "a": "hunter", "b": "hunter" } });
    let digests = |key, uid| {
        let masked = masked(&persistence(key), &body(uid), &essence).expect("fields are hidden");
        ["a", "b"].map(|it| masked["data"][it].as_str().expect("a digest").to_owned())
    };
    let mut all: Vec<_> = [
        digests(Some("k"), "u"),
        digests(Some("k"), "v"),
        digests(Some("l"), "u"),
        digests(None, "u"),
    ]
    .concat();
    assert!(all.iter().all(|it| it.starts_with("kopf:hmac:")), "{all:?}");
    assert_eq!(digests(Some("k"), "u"), digests(Some("k"), "u"));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8);
}

#[test]
fn the_log_shows_paths_and_no_values() {
    let persistence = persistence(None);
    let body = json!({
        "metadata": { "name": "x", "annotations": { "any": "hunter" } },
        "data": { "a": "hunter" }, "spec": { "password": { "deep": ["hunter"] }, "size": 1 },
    });
    let shown = loggable(&persistence, &body).expect("fields are hidden");
    assert_eq!(shown["data"], json!({ "a": "(hidden)" }));
    assert_eq!(shown["spec"], json!({ "password": { "deep": "(hidden)" }, "size": 1 }));
    assert!(!shown.to_string().contains("hunter"), "{shown}");
    let other = json!({ "spec": { "password": "hunter2" }, "data": { "a": "hunter2" } });
    for (old, new) in [(&body, &other), (&Value::Null, &body), (&other, &Value::Null)] {
        let diff = loggable_diff(&persistence, &diff::diff(old, new)).expect("fields are hidden");
        let text = diff::to_text(&diff);
        assert!(!text.contains("hunter"), "{text}");
    }
}
