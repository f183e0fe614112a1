//! Uniqueness of the items of lists that are sets or maps: `x-kubernetes-list-type`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ListType, Schema, SchemaShape};
use crate::refusal::{
    ProblemKind, ValidationProblem,
    path::{push_field, push_item},
};
use crate::sorted::CollectSorted as _;

/// Adds a problem for every duplicate item, anywhere in an object.
pub(super) fn check(schema: &Schema, object: &Value, found: &mut Vec<ValidationProblem>) {
    walk(schema, object, &mut String::new(), found);
}

/// Recurses into the parts of a value. The name of each part is appended to the path.
fn walk(schema: &Schema, value: &Value, path: &mut String, found: &mut Vec<ValidationProblem>) {
    let length = path.len();
    match (value, &schema.shape) {
        (Value::Object(values), SchemaShape::Map { fields, rest, .. }) => {
            for (name, value) in values {
                match (fields.get(name), rest) {
                    (Some(link), _) => {
                        let Some(schema) = link.schema() else { continue };
                        push_field(path, name);
                        walk(schema, value, path, found);
                    }
                    (None, Some(link)) => {
                        let Some(schema) = link.schema() else { continue };
                        push_item(path, name);
                        walk(schema, value, path, found);
                    }
                    (None, None) => {}
                }
                path.truncate(length);
            }
        }
        (Value::Array(items), SchemaShape::List { items: link, order }) => {
            duplicates(order, items, path, found);
            let Some(schema) = link.as_ref().and_then(super::SchemaOrRef::schema) else { return };
            for (at, item) in items.iter().enumerate() {
                push_item(path, at);
                walk(schema, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn duplicates(order: &ListType, items: &[Value], path: &str, found: &mut Vec<ValidationProblem>) {
    let problem =
        |at: usize, kind: ProblemKind| ValidationProblem::new(format!("{path}[{at}]"), kind);
    match order {
        ListType::Atomic => {}
        ListType::Set => {
            for at in repeated(items.iter()) {
                let item = items.get(at).cloned().unwrap_or_default();
                found.push(problem(at, ProblemKind::Duplicate(item)));
            }
        }
        ListType::Map(keys) => {
            let odd = items.iter().position(|it| !it.is_object() && !it.is_null());
            if let Some((at, item)) = odd.and_then(|at| Some((at, items.get(at)?))) {
                let text = "must be an object for an array of list-type map".into();
                found.push(problem(at, ProblemKind::Invalid(item.clone(), text)));
                return;
            }
            let keyed: Vec<Value> = items.iter().map(|it| key(it, keys)).collect();
            for at in repeated(keyed.iter()) {
                let key = keyed.get(at).cloned().unwrap_or_default();
                found.push(problem(at, ProblemKind::Duplicate(key)));
            }
        }
    }
}

/// Returns the keys of an item.
fn key(item: &Value, keys: &[String]) -> Value {
    let fields = keys.iter().filter_map(|it| Some((it.clone(), item.get(it)?.clone())));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// Returns the positions at which values occur for the second time; further occurrences are not reported.
fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, value) in values.enumerate() {
        let times = seen.entry(canonical(value)).or_default();
        *times += 1;
        if *times == 2 {
            found.push(at);
        }
    }
    found
}

/// Returns the same string for equal values: the order of fields does not matter. The JSON parser bounds the depth.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, String> =
                fields.iter().map(|(name, it)| (name, canonical(it))).collect_map();
            format!("{sorted:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
