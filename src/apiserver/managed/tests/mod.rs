//! Field management, compared with the responses of a real server.
//!
//! `tests/recorded/managed.json` has exchanges with version 1.20.2: the stored object, the request, and the result.

mod apply;
mod fields;
mod track;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FieldManager, apply as apply_config, track as track_update};
use crate::{native, refusal::Refusal, schema::Schema};

const RECORDED: &str = include_str!("../../tests/recorded/managed.json");
/// One creation of each native kind.
const KINDS: &str = include_str!("../../tests/recorded/managed-kinds.json");

/// Number of exchanges with native kinds that are compiled in.
const STEPS_WITH_BUILT_IN_SCHEMA: usize = 60;

/// Metadata that the server sets later.
const SERVED: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "namespace",
    "selfLink",
];

fn writer<'a>(manager: &'a str, time: &'a str) -> FieldManager<'a> {
    FieldManager { manager, api_version: "v1", subresource: "", time, ignored: &[] }
}

#[test]
fn recorded_exchanges_give_the_same_results() {
    replay_all(RECORDED, 79);
}

#[test]
fn creators_of_native_objects_manage_the_same_fields_as_on_the_real_server() {
    replay_all(KINDS, 51);
}

#[test]
fn the_built_in_schemas_give_the_same_results() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let all = recorded["steps"].as_array().unwrap().iter();
    let all = all.filter_map(|step| Some((native::definition(&definition(step)?)?, step)));
    let steps = check(&all.collect::<Vec<_>>());
    assert_eq!(steps, STEPS_WITH_BUILT_IN_SCHEMA);
}

fn replay_all(recorded: &str, count: usize) {
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    let schemas: BTreeMap<&str, Schema> = recorded["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, schema)| (name.as_str(), Schema::parse(schema)))
        .collect();
    let steps = recorded["steps"].as_array().unwrap().iter();
    let steps = steps.map(|step| (&schemas[step["schema"].as_str().unwrap()], step));
    assert_eq!(check(&steps.collect::<Vec<_>>()), count);
}

/// Replays exchanges. Returns their number.
fn check(steps: &[(&Schema, &Value)]) -> usize {
    let failures: Vec<String> = steps
        .iter()
        .filter_map(|(schema, step)| {
            let difference = replay(schema, step).err()?;
            Some(format!("{}:\n{difference}", step["title"].as_str().unwrap()))
        })
        .collect();
    assert!(failures.is_empty(), "{} differ\n\n{}", failures.len(), failures.join("\n\n"));
    steps.len()
}

/// Returns the name of the built-in schema for an exchange.
fn definition(step: &Value) -> Option<String> {
    let object = step.get("new").or(step.get("config"))?;
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    if group == "apiextensions.k8s.io" {
        return Some(format!(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
        ));
    }
    let group = group.split('.').next()?;
    Some(format!("io.k8s.api.{group}.{version}.{kind}"))
}

fn replay(schema: &Schema, step: &Value) -> Result<(), String> {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let writer =
        FieldManager { api_version: text("apiVersion"), ..writer(text("manager"), text("time")) };
    let old = Some(&step["old"]).filter(|it| !it.is_null());
    if let Some(new) = step.get("new") {
        let mut new = new.clone();
        track_update(Some(schema), &writer, old, &mut new);
        return equal("managed", &entries(&new), &step["managed"]);
    }
    let force = step["force"] == true;
    match (apply_config(Some(schema), &writer, old, &step["config"], force), step.get("refusal")) {
        (Err(refusal), Some(expected)) => equal("refusal", &essence(&refusal), expected),
        (Ok(object), None) => {
            equal("managed", &entries(&object), &step["managed"])?;
            if step["result"].is_null() {
                return Ok(());
            }
            equal("object", &content(&object), &content(&step["result"]))
        }
        (Ok(object), Some(expected)) => Err(format!("expected {expected}\n     got {object}")),
        (Err(refusal), None) => Err(format!("refused: {refusal}")),
    }
}

fn equal(what: &str, got: &Value, expected: &Value) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what}\nexpected {expected}\n     got {got}"))
}

fn entries(object: &Value) -> Value {
    object["metadata"].get("managedFields").cloned().unwrap_or_default()
}

/// Returns a refusal without its order, which the real server does not guarantee.
fn essence(refusal: &Refusal) -> Value {
    let causes = refusal.details.iter().filter_map(|it| it["causes"].as_array()).flatten();
    let mut causes: Vec<Value> = causes.map(|it| json!([it["message"], it["field"]])).collect();
    causes.sort_by_key(Value::to_string);
    json!({
        "code": refusal.code, "reason": refusal.reason, "message": refusal.message, "causes": causes,
    })
}

/// Returns an object without empty values and without fields that the server sets later.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.retain(|name, value| !SERVED.contains(&name.as_str()) && *value != json!({}));
    object.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    object
}
