//! Cases that the vectors do not cover.

use serde_json::json;

use super::*;

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn fields_that_the_schema_does_not_know_are_inconsistent() {
    let merge = map(&json!({"status": {"known": 1, "unknown": 2}, "spec": {"gone": null}}));
    let response = json!({"status": {"known": 1, "other": 3}, "spec": {}});
    let found = inconsistencies(&merge, &response);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, ["status", "unknown"]);
}

#[test]
fn empty_maps_that_servers_drop_are_consistent() {
    let merge = map(&json!({"metadata": {"annotations": {}, "labels": {}, "finalizers": []}}));
    assert_eq!(inconsistencies(&merge, &json!({"metadata": {"name": "n"}})), []);
    let merge = map(&json!({"metadata": {"annotations": {"a": "1"}}}));
    assert_eq!(inconsistencies(&merge, &json!({"metadata": {"name": "n"}})).len(), 1);
}

#[test]
fn the_deletion_of_the_last_annotation_is_consistent() {
    let merge = map(&json!({"metadata": {"annotations": {"a": null}, "labels": {"b": null}}}));
    assert_eq!(inconsistencies(&merge, &json!({"metadata": {"name": "n"}})), []);
    let kept = json!({"metadata": {"annotations": {"a": "1"}, "labels": {}}});
    assert_eq!(inconsistencies(&merge, &kept).len(), 1);
}

#[test]
fn a_merge_replaces_values_that_are_not_maps() {
    let mut body = json!({"a": 1, "b": 2});
    apply_merge(&mut body, &map(&json!({"a": {"x": 1}, "b": {"y": null}})));
    assert_eq!(body, json!({"a": {"x": 1}, "b": 2}));
}

#[test]
fn transformations_of_finalizers_are_idempotent() {
    let original = json!({"metadata": {"name": "n"}});
    let mut body = original.clone();
    block_deletion(&mut body, "f");
    let blocked = body.clone();
    block_deletion(&mut body, "f");
    assert_eq!(body, blocked);
    allow_deletion(&mut body, "f");
    allow_deletion(&mut body, "f");
    assert_eq!(body, original);
}

#[test]
fn a_newer_patch_wins_over_one_that_was_not_sent() {
    let map = |it: Value| it.as_object().cloned().unwrap_or_default();
    let mut patch = map(json!({ "status": { "a": 1, "b": { "x": 1 } }, "spec": 0 }));
    compose(
        &mut patch,
        map(json!({ "status": { "b": { "y": null }, "a": 2 }, "spec": { "z": 1 } })),
    );
    let both = json!({ "status": { "a": 2, "b": { "x": 1, "y": null } }, "spec": { "z": 1 } });
    assert_eq!(Value::Object(patch), both);
}
