//! Compares children with the bodies that were applied. Defaults that the server has added are not differences.

use std::num::NonZeroU64;

use kopf_json::values;
use serde_json::Value;

/// The fields of metadata that change without a change of the content.
const VOLATILE: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];

/// Returns the digest of a body to apply.
pub fn digest_text(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Returns a fingerprint of the content of an object: without its status and the fields that the server maintains.
pub fn content(body: &Value) -> NonZeroU64 {
    NonZeroU64::MIN | fingerprint_of_content(body)
}

fn fingerprint_of_content(body: &Value) -> u64 {
    let Value::Object(fields) = body else { return values::fingerprint(body) };
    let content = fields.iter().filter(|(key, _)| *key != "status");
    values::fingerprint_of(content, |(key, value)| match value.as_object() {
        Some(meta) if key == "metadata" => {
            let kept = meta.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            values::fingerprint_of(kept, |(_, value)| values::fingerprint(value))
        }
        Some(_) | None => values::fingerprint(value),
    })
}

/// Returns the fingerprint that must be stored to notice later changes of the applied fields. `None` if the object has all of them: then a
/// comparison detects changes, except of the status, which others may change.
pub fn content_after(object: &Value, applied: &Value) -> Option<NonZeroU64> {
    let is_plain = applied.get("status").is_none() && contains(object, applied);
    (!is_plain).then(|| content(object))
}

/// Returns whether an object has all fields that were applied to it. Items of lists are found by their names, if all have one.
pub fn contains(object: &Value, applied: &Value) -> bool {
    match (object, applied) {
        (Value::Object(object), Value::Object(applied)) => applied.iter().all(|(key, value)| {
            object.get(key).map_or_else(|| is_void(value), |it| contains(it, value))
        }),
        (Value::Array(object), Value::Array(applied)) => {
            let named = applied.iter().map(name).collect::<Option<Vec<_>>>();
            let Some(names) = named.filter(|it| !it.is_empty()) else {
                return object.len() == applied.len()
                    && object.iter().zip(applied).all(|(it, value)| contains(it, value));
            };
            applied.iter().zip(names).all(|(value, own)| {
                let mut same = object.iter().filter(|it| name(it) == Some(own));
                same.any(|it| contains(it, value))
            })
        }
        (object, applied) => values::equal(object, applied),
    }
}

fn name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// Returns whether servers leave this value out.
fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
