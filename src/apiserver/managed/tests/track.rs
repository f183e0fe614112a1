//! Entries after updates, where there is no recording to compare with.

use serde_json::{Value, json};

use super::{entries, writer};
use crate::{
    managed::{FieldManager, check_entries, manager_of, settle, track},
    schema::Schema,
};

const FIRST: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:05Z";

fn map(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

fn pod(env: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "env": env }] } })
}

fn pods() -> Schema {
    let named = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "value": { "type": "string" },
    } });
    let container = json!({ "type": "object", "properties": {
        "name": { "type": "string" },
        "env": { "type": "array", "items": named,
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name" },
    } });
    Schema::parse(&json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "containers": { "type": "array", "items": container,
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name" },
        } },
    } }))
}

#[test]
fn subresources_have_separate_entries() {
    let mut old =
        json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": {}, "spec": { "a": 1 } });
    track(None, &FieldManager { api_version: "x.io/v1", ..writer("bob", FIRST) }, None, &mut old);
    let mut new = old.clone();
    new["status"] = json!({ "b": 1 });
    let status =
        FieldManager { api_version: "x.io/v1", subresource: "status", ..writer("bob", LATER) };
    track(None, &status, Some(&old), &mut new);
    assert_eq!(
        entries(&new),
        json!([
            { "manager": "bob", "operation": "Update", "apiVersion": "x.io/v1", "time": FIRST,
              "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { ".": {}, "f:a": {} } } },
            { "manager": "bob", "operation": "Update", "apiVersion": "x.io/v1", "time": LATER,
              "fieldsType": "FieldsV1", "fieldsV1": { "f:status": { ".": {}, "f:b": {} } },
              "subresource": "status" },
        ])
    );
}

#[test]
fn empty_metadata_counts_as_missing() {
    let mut old = map(&json!({ "a": "1" }));
    track(None, &writer("bob", FIRST), None, &mut old);
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({});
    new["metadata"]["finalizers"] = json!([]);
    new["metadata"]["annotations"] = Value::Null;
    track(None, &writer("eve", LATER), Some(&old), &mut new);
    assert_eq!(entries(&new), entries(&old));
}

#[test]
fn a_subresource_cannot_edit_the_entries() {
    let mut old = map(&json!({ "a": "1" }));
    track(None, &writer("bob", FIRST), None, &mut old);
    let mut new = old.clone();
    new["metadata"]["managedFields"] = json!([{}]);
    track(
        None,
        &FieldManager { subresource: "status", ..writer("eve", LATER) },
        Some(&old),
        &mut new,
    );
    assert_eq!(entries(&new), entries(&old));
}

#[test]
fn entries_of_a_new_object_are_not_taken_from_the_client() {
    let mut new = map(&json!({ "a": "1" }));
    new["metadata"]["managedFields"] = json!([{ "manager": "x", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:a": {} } } }]);
    track(None, &writer("bob", FIRST), None, &mut new);
    assert_eq!(entries(&new)[0]["manager"], "bob");
    assert_eq!(entries(&new).as_array().unwrap().len(), 1);
}

#[test]
fn times_are_in_utc_and_to_the_second() {
    let mut old = map(&json!({ "a": "1" }));
    track(None, &writer("bob", FIRST), None, &mut old);
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = "2020-01-01T00:00:00.5+01:00".into();
    track(None, &writer("eve", LATER), Some(&old), &mut new);
    assert_eq!(entries(&new)[0]["time"], "2019-12-31T23:00:00Z");
    new["metadata"]["managedFields"][0]["time"] = "yesterday".into();
    track(None, &writer("eve", LATER), Some(&old), &mut new);
    assert_eq!(entries(&new), entries(&old));
}

#[test]
fn duplicates_of_a_list_are_one_field() {
    let schema = pods();
    let twice = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
    let mut old = pod(&twice);
    track(Some(&schema), &writer("bob", FIRST), None, &mut old);
    let fields = |object: &Value, index: usize| {
        entries(object)[index]["fieldsV1"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]["f:env"]
            .clone()
    };
    assert_eq!(fields(&old, 0), json!({ ".": {}, "k:{\"name\":\"A\"}": {} }));
    let mut new = old.clone();
    new["spec"]["containers"][0]["env"][1]["value"] = "3".into();
    track(Some(&schema), &writer("eve", LATER), Some(&old), &mut new);
    assert_eq!(fields(&new, 0), json!({}));
    assert_eq!(fields(&new, 1), json!({ "k:{\"name\":\"A\"}": {} }));
}

#[test]
fn items_that_cannot_be_distinguished_make_a_list_one_field() {
    let schema = pods();
    let mut new = pod(&json!(["x"]));
    track(Some(&schema), &writer("bob", FIRST), None, &mut new);
    let container = &entries(&new)[0]["fieldsV1"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(container["f:env"], json!({}));
}

#[test]
fn a_map_that_has_become_atomic_is_owned_as_a_whole() {
    let schema = |kind: &str| {
        Schema::parse(&json!({ "type": "object", "properties": { "spec": {
            "type": "object", "x-kubernetes-map-type": kind, "properties": { "a": { "type": "string" } },
        } } }))
    };
    let bob = FieldManager { api_version: "x.io/v1", ..writer("bob", FIRST) };
    let mut old =
        json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": {}, "spec": { "a": "1" } });
    track(Some(&schema("granular")), &bob, None, &mut old);
    assert_eq!(entries(&old)[0]["fieldsV1"], json!({ "f:spec": { ".": {}, "f:a": {} } }));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "l": "1" });
    let eve = FieldManager { api_version: "x.io/v1", ..writer("eve", LATER) };
    track(Some(&schema("atomic")), &eve, Some(&old), &mut new);
    assert_eq!(entries(&new)[0]["fieldsV1"], json!({ "f:spec": {} }));
}

#[test]
fn merged_entries_keep_their_versions() {
    let mut object =
        json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": {}, "data": { "k": 0 } });
    for index in 0..13 {
        let manager = format!("m{index:02}");
        let api_version = if index % 2 == 0 { "x.io/v1" } else { "x.io/v2" };
        let time = format!("2026-01-01T00:00:{index:02}Z");
        let old = (index > 0).then(|| object.clone());
        object["data"][&manager] = index.into();
        track(
            None,
            &FieldManager { api_version, ..writer(&manager, &time) },
            old.as_ref(),
            &mut object,
        );
    }
    let list = entries(&object);
    let list: Vec<(&str, &str, &str)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap();
            (text("manager"), text("apiVersion"), text("time"))
        })
        .collect();
    assert_eq!(list.len(), 10);
    assert_eq!(list[0], ("ancient-changes", "x.io/v2", "2026-01-01T00:00:03Z"));
    assert_eq!(list[1], ("ancient-changes", "x.io/v1", "2026-01-01T00:00:04Z"));
    assert_eq!(list[2], ("m05", "x.io/v2", "2026-01-01T00:00:05Z"));
}

#[test]
fn ignored_fields_have_no_manager() {
    let mut new =
        json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": {}, "spec": 1, "status": 2 });
    let bob = FieldManager { api_version: "x.io/v1", ignored: &["status"], ..writer("bob", FIRST) };
    track(None, &bob, None, &mut new);
    assert_eq!(entries(&new)[0]["fieldsV1"], json!({ "f:spec": {} }));
}

#[test]
fn a_write_that_changes_only_times_is_a_no_op() {
    let mut old = map(&json!({ "a": "1" }));
    track(None, &writer("bob", FIRST), None, &mut old);
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = LATER.into();
    settle(&old, &mut new);
    assert_eq!(new, old);
    new["metadata"]["managedFields"][0]["time"] = LATER.into();
    new["data"]["a"] = "2".into();
    settle(&old, &mut new);
    assert_eq!(entries(&new)[0]["time"], LATER);
}

#[test]
fn a_manager_is_named_by_the_parameter_or_the_user_agent() {
    assert_eq!(manager_of("me", "kubectl/v1.20.2 (linux/amd64)"), "me");
    assert_eq!(manager_of("", "kubectl/v1.20.2 (linux/amd64)"), "kubectl");
    assert_eq!(manager_of("", "Go\u{1}http client"), "Gohttp client");
    assert_eq!(manager_of("", &"ä".repeat(100)).len(), 128);
    assert_eq!(manager_of("", ""), "");
}

#[test]
fn entries_with_unknown_operations_are_invalid() {
    let mut object = map(&json!({}));
    object["metadata"]["managedFields"] =
        json!([{ "operation": "Apply" }, { "operation": "Bogus" }]);
    let problems = check_entries(&object);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].field, "metadata.managedFields.operation");
    assert_eq!(problems[0].text(), "Invalid value: \"Bogus\": must be `Apply` or `Update`");
}

#[test]
fn values_that_are_too_deep_are_one_field() {
    let mut deep = json!(1);
    for _ in 0..600 {
        deep = json!({ "a": deep });
    }
    let mut new = json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": {}, "spec": deep });
    track(None, &FieldManager { api_version: "x.io/v1", ..writer("bob", FIRST) }, None, &mut new);
    let mut fields = &entries(&new)[0]["fieldsV1"];
    let mut depth = 0;
    while let Some((_, below)) =
        fields.as_object().and_then(|it| it.iter().find(|(key, _)| *key != "."))
    {
        fields = below;
        depth += 1;
    }
    assert!((200..300).contains(&depth), "{depth}");
}
