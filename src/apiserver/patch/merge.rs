//! Merge patches, RFC 7386, with the deviations of the real server: nulls are removed from values that a patch adds, but not from
//! values that replace others.

use serde_json::{Map, Value};

/// Applies a patch, which is an object or a list; a list replaces the whole object.
pub(crate) fn apply(patch: &Value, object: &Value) -> Value {
    match (object, patch) {
        (Value::Object(_), Value::Object(fields)) => {
            let mut merged = object.clone();
            if let Value::Object(own) = &mut merged {
                merge(own, fields);
            }
            merged
        }
        _ => pruned(patch),
    }
}

fn merge(own: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match (own.get_mut(key), value) {
            (_, Value::Null) => {
                own.shift_remove(key);
            }
            (Some(Value::Object(inner)), Value::Object(fields)) => merge(inner, fields),
            (Some(Value::Object(_)), other) => {
                own.insert(key.clone(), other.clone());
            }
            (_, other) => {
                own.insert(key.clone(), pruned(other));
            }
        }
    }
}

/// Removes nulls from maps and lists.
fn pruned(value: &Value) -> Value {
    let keep = |it: &&Value| !it.is_null();
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, it)| keep(it));
            Value::Object(kept.map(|(key, it)| (key.clone(), pruned(it))).collect())
        }
        Value::Array(items) => items.iter().filter(keep).map(pruned).collect(),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            scalar.clone()
        }
    }
}
