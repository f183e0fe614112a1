//! Server-side apply where the real server of the recordings has bugs that newer ones have fixed, or lacks their features.

use serde_json::{Value, json};

use super::{entries, writer};
use crate::{
    managed::{FieldManager, apply, track},
    schema::Schema,
};

const FIRST: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:05Z";

fn by<'a>(manager: &'a str, time: &'a str) -> FieldManager<'a> {
    FieldManager { api_version: "x.io/v1", ..writer(manager, time) }
}

fn body(spec: &Value) -> Value {
    json!({ "apiVersion": "x.io/v1", "kind": "X", "metadata": { "name": "a" }, "spec": spec })
}

fn schema() -> Schema {
    let text = json!({ "type": "string" });
    Schema::parse(&json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "labels": { "type": "object", "additionalProperties": text },
            "name": text,
            "ports": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": { "type": "object", "properties": {
                    "port": { "type": "integer" }, "name": text,
                    "protocol": { "type": "string", "default": "TCP" },
                } } },
            "size": { "x-kubernetes-int-or-string": true },
        } },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } }))
}

#[test]
fn the_map_is_removed_with_its_last_label() {
    let schema = schema();
    let full = apply(
        Some(&schema),
        &by("alice", FIRST),
        None,
        &body(&json!({ "labels": { "a": "1" }, "name": "n" })),
        false,
    );
    let less = apply(
        Some(&schema),
        &by("alice", LATER),
        Some(&full.unwrap()),
        &body(&json!({ "name": "n" })),
        false,
    );
    assert_eq!(less.unwrap()["spec"], json!({ "name": "n" }));
}

#[test]
fn the_map_of_another_manager_stays_without_its_last_label() {
    let schema = schema();
    let mut made = body(&json!({ "labels": {} }));
    track(Some(&schema), &by("bob", FIRST), None, &mut made);
    let full = apply(
        Some(&schema),
        &by("alice", FIRST),
        Some(&made),
        &body(&json!({ "labels": { "a": "1" } })),
        false,
    )
    .unwrap();
    let less =
        apply(Some(&schema), &by("alice", LATER), Some(&full), &body(&json!({})), false).unwrap();
    assert_eq!(less["spec"], json!({ "labels": {} }));
    assert_eq!(entries(&less), entries(&made));
}

#[test]
fn a_missing_key_has_its_default() {
    let schema = schema();
    let full = json!({ "ports": [{ "port": 80, "protocol": "TCP", "name": "x" }, { "port": 80, "protocol": "UDP" }] });
    let live = apply(Some(&schema), &by("alice", FIRST), None, &body(&full), false).unwrap();
    let config = body(&json!({ "ports": [{ "port": 80, "name": "y" }] }));
    let refusal = apply(Some(&schema), &by("bob", LATER), Some(&live), &config, false).unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"alice\": .spec.ports[port=80,protocol=\"TCP\"].name"
    );
    let forced = apply(Some(&schema), &by("bob", LATER), Some(&live), &config, true).unwrap();
    assert_eq!(forced["spec"]["ports"][0], json!({ "port": 80, "protocol": "TCP", "name": "y" }));
    assert_eq!(forced["spec"]["ports"].as_array().unwrap().len(), 2);
}

#[test]
fn int_or_string_does_not_hide_the_rest_of_the_schema() {
    let schema = schema();
    let config = body(&json!({ "size": "5%", "ports": [{ "port": 80 }] }));
    let object = apply(Some(&schema), &by("alice", FIRST), None, &config, false).unwrap();
    assert_eq!(
        entries(&object)[0]["fieldsV1"]["f:spec"],
        json!({ "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } }, "f:size": {} })
    );
}

#[test]
fn fields_that_cannot_be_written_are_neither_changed_nor_managed() {
    let schema = schema();
    let mut config = body(&json!({ "name": "n" }));
    config["status"] = json!({ "phase": "x" });
    let main = FieldManager { ignored: &["status"], ..by("alice", FIRST) };
    let live = apply(Some(&schema), &main, None, &config, false).unwrap();
    assert!(live.get("status").is_none());
    assert_eq!(entries(&live)[0]["fieldsV1"], json!({ "f:spec": { "f:name": {} } }));
    let status = FieldManager { subresource: "status", ignored: &["spec"], ..by("alice", LATER) };
    config["spec"]["name"] = "other".into();
    let object = apply(Some(&schema), &status, Some(&live), &config, false).unwrap();
    assert_eq!(object["spec"], json!({ "name": "n" }));
    assert_eq!(object["status"], json!({ "phase": "x" }));
    assert_eq!(entries(&object)[1]["subresource"], "status");
    assert_eq!(entries(&object)[1]["fieldsV1"], json!({ "f:status": { "f:phase": {} } }));
    let again = apply(Some(&schema), &main, Some(&object), &config, true).unwrap();
    assert_eq!(again["status"], json!({ "phase": "x" }));
}

#[test]
fn a_conflict_names_the_subresource() {
    let mut live = body(&json!({}));
    track(None, &by("bob", FIRST), None, &mut live);
    let mut new = live.clone();
    new["status"] = json!({ "phase": "x" });
    track(None, &FieldManager { subresource: "status", ..by("ctl", FIRST) }, Some(&live), &mut new);
    let mut config = body(&json!({}));
    config["status"] = json!({ "phase": "y" });
    let refusal = apply(None, &by("alice", LATER), Some(&new), &config, false).unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"ctl\" with subresource \"status\" using x.io/v1: .status.phase"
    );
}

#[test]
fn an_applier_is_the_same_in_all_versions() {
    let live =
        apply(None, &by("alice", FIRST), None, &body(&json!({ "a": 1, "b": 1 })), false).unwrap();
    let mut config = body(&json!({ "a": 1 }));
    config["apiVersion"] = "x.io/v2".into();
    let mut seen = live.clone();
    seen["apiVersion"] = "x.io/v2".into();
    let v2 = FieldManager { api_version: "x.io/v2", ..by("alice", LATER) };
    let object = apply(None, &v2, Some(&seen), &config, false).unwrap();
    assert_eq!(object["spec"], json!({ "a": 1 }));
    assert_eq!(entries(&object).as_array().unwrap().len(), 1);
    assert_eq!(entries(&object)[0]["apiVersion"], "x.io/v2");
}

#[test]
fn many_fields_take_little_time() {
    let data = |value: &str| {
        let fields = (0..20_000).map(|it| (format!("k{it}"), Value::from(value)));
        body(&Value::Object(fields.collect()))
    };
    let live = apply(None, &by("alice", FIRST), None, &data("1"), false).unwrap();
    let refusal = apply(None, &by("bob", LATER), Some(&live), &data("2"), false).unwrap_err();
    assert!(
        refusal.message.starts_with(
            "Apply failed with 20000 conflicts: conflicts with \"alice\":\n- .spec.k0\n"
        )
    );
    let less = apply(None, &by("alice", LATER), Some(&live), &body(&json!({})), false).unwrap();
    assert_eq!(less["spec"], json!({}));
}
