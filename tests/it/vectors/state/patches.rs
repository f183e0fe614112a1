//! Conversion of patches to operations.

use kopf::logic::change::patch;
use serde_json::{Value, json};

use super::{map, text};
use crate::vectors::{run, same};

#[test]
fn json_patches() {
    run("json-patches", |vector| {
        let before = &vector.input["body"];
        let mut after = before.clone();
        patch::apply_merge(&mut after, &map(&vector.input["merge"]));
        for function in vector.input["fns"].as_array().into_iter().flatten() {
            call(&mut after, function);
        }
        same("body", &after, &vector.expected["body"])?;

        let operations = patch::operations(before, &after);
        let is_empty = |it: &Value| it.as_array().is_none_or(Vec::is_empty);
        if operations.is_empty() != is_empty(&vector.expected["ops"]) {
            return Err(format!("got {operations:?}"));
        }
        let mut applied = before.clone();
        json_patch::patch(&mut applied, &operations).map_err(|it| it.to_string())?;
        same("applied", &applied, &after)?;

        let (of_body, of_status) = patch::split_status(operations);
        if let Some(expected) = vector.expected.get("status_ops") {
            if of_status.is_empty() != is_empty(expected) {
                return Err(format!("of the status: {of_status:?}"));
            }
            if of_body.is_empty() != is_empty(&vector.expected["body_ops"]) {
                return Err(format!("of the body: {of_body:?}"));
            }
        }
        let mut applied = before.clone();
        json_patch::patch(&mut applied, &of_body).map_err(|it| it.to_string())?;
        json_patch::patch(&mut applied, &of_status).map_err(|it| it.to_string())?;
        same("applied in two parts", &applied, &after)
    });
}

/// Calls a function of the catalogue of the vectors.
pub(crate) fn call(body: &mut Value, function: &Value) {
    let value = &function["value"];
    match text(&function["fn"]) {
        "noop" => {}
        "block_deletion" => patch::block_deletion(body, text(value)),
        "allow_deletion" => patch::allow_deletion(body, text(value)),
        "set" => *place(body, &function["path"]) = value.clone(),
        "append" => items(body, &function["path"]).push(value.clone()),
        "append_unique" => {
            let items = items(body, &function["path"]);
            if !items.contains(value) {
                items.push(value.clone());
            }
        }
        "remove_item" => {
            let items = items(body, &function["path"]);
            if let Some(index) = items.iter().position(|it| it == value) {
                items.remove(index);
            }
        }
        "increment" => {
            let place = place(body, &function["path"]);
            *place = json!(place.as_i64().unwrap_or(0) + value.as_i64().unwrap_or(1));
        }
        "delete" => {
            let path = super::field(&function["path"]);
            let (last, parents) = path.split_last().expect("a path");
            let parent = parents.iter().try_fold(body, |value, key| value.get_mut(key));
            parent.and_then(Value::as_object_mut).map(|it| it.shift_remove(last));
        }
        other => panic!("unknown function {other}"),
    }
}

fn items<'a>(body: &'a mut Value, path: &Value) -> &'a mut Vec<Value> {
    let place = place(body, path);
    if place.is_null() {
        *place = json!([]);
    }
    place.as_array_mut().expect("a list")
}

fn place<'a>(body: &'a mut Value, path: &Value) -> &'a mut Value {
    super::field(path).iter().fold(body, |value, key| &mut value[key])
}
