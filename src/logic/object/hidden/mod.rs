//! Secret values: they are compared by digests, and never stored on objects or logged.
//!
//! The last handled state of a Secret has a keyed digest (HMAC-SHA-256) in place of each value below `data` and `stringData`, and
//! likewise for the fields that `settings.persistence.sensitive_fields` names. So diffs have their paths, while old values that
//! have changed read as absent. The digest covers the uid of the object and the path, so equal values have different digests.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value};
use sha2::Sha256;

use super::{diff::Diff, fields};
use crate::settings::{FieldPath, HiddenFields, PersistenceSettings};
use crate::sorted;

/// Begins a digest. No value in base64 does.
const PREFIX: &str = "kopf:hmac:";
/// Stands for an old value that is not known any more, inside of the operator.
const UNKNOWN: &str = "\u{0}kopf:unknown";
/// Replaces a value in the log.
const SHOWN: &str = "(hidden)";
/// Values of fewer bytes are not searched for in strings from other sources.
const VALUE_LENGTH_MIN: usize = 3;
/// Bytes of a digest that are stored.
const DIGEST_BYTES: usize = 18;

/// Returns the essence as it is stored: with digests instead of values. `body` is the object.
pub fn masked(persistence: &PersistenceSettings, body: &Value, essence: &Value) -> Option<Value> {
    let hidden = persistence.hidden.as_deref()?;
    let mut masked = essence.clone();
    edit(&hidden.paths, &mut masked, &mut |path, leaf| {
        *leaf = digest(hidden, body, path, leaf).into();
    });
    Some(masked)
}

/// Returns the stored essence with the values that are still the same. Others become unknown, whether stored as digests or plain.
pub fn revealed(
    persistence: &PersistenceSettings,
    body: &Value,
    mut stored: Value,
    new: &Value,
) -> Value {
    let Some(hidden) = persistence.hidden.as_deref() else { return stored };
    edit(&hidden.paths, &mut stored, &mut |path, leaf| {
        let present = fields::get(new, path).filter(|it| !it.is_null() && !it.is_object());
        let is_same =
            |it: &&Value| *it == leaf || leaf.as_str() == Some(&*digest(hidden, body, path, it));
        *leaf = present.filter(is_same).cloned().unwrap_or_else(|| UNKNOWN.into());
    });
    stored
}

/// Returns whether a stored essence has values that must not be stored: Kopf stores them, and earlier versions did.
pub fn is_exposed(persistence: &PersistenceSettings, stored: &Value) -> bool {
    let Some(hidden) = persistence.hidden.as_deref() else { return false };
    let (mut stored, mut is_exposed) = (stored.clone(), false);
    edit(&hidden.paths, &mut stored, &mut |_, leaf| {
        is_exposed |= !leaf.as_str().is_some_and(|it| it.starts_with(PREFIX));
    });
    is_exposed
}

/// Returns the value as scripts read it: unknown values are null.
pub fn readable(value: &Value) -> Value {
    match value {
        Value::String(it) if it == UNKNOWN => Value::Null,
        Value::Object(map) => {
            let readable = |(key, it): (&String, &Value)| (key.clone(), readable(it));
            map.iter().map(readable).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value.clone()
        }
    }
}

/// Returns the diff as scripts read it.
pub fn readable_diff(diff: &Diff) -> Diff {
    let mut diff = diff.clone();
    for item in &mut diff {
        item.old = readable(&item.old);
    }
    diff
}

/// Returns a body or a merge-patch of it for the log, without values.
pub fn loggable(persistence: &PersistenceSettings, value: &Value) -> Option<Value> {
    let hidden = persistence.hidden.as_deref()?;
    let mut shown = value.clone();
    edit(&hidden.paths, &mut shown, &mut |_, leaf| *leaf = SHOWN.into());
    let annotations = shown.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    // Any of them may contain the whole object: that of `kubectl apply` and those of operators.
    annotations.into_iter().flatten().for_each(|(_, it)| *it = SHOWN.into());
    Some(shown)
}

/// Returns the operations of a JSON patch for the log, without values.
pub fn loggable_operations(operations: &Value) -> Value {
    let mut shown = operations.clone();
    for operation in shown.as_array_mut().into_iter().flatten() {
        operation.get_mut("value").into_iter().for_each(|it| *it = SHOWN.into());
    }
    shown
}

/// Returns a string from another source, such as an error of the server, without the values of an object and of a patch of it.
pub fn without_values(
    persistence: &PersistenceSettings,
    (body, patch): (&Value, &Value),
    text: &str,
) -> String {
    let Some(hidden) = persistence.hidden.as_deref() else { return text.to_owned() };
    let mut values = Vec::new();
    for whole in [body, patch] {
        edit(&hidden.paths, &mut whole.clone(), &mut |_, leaf| collect(leaf, &mut values));
    }
    // Operations of a JSON patch may affect any field.
    for operation in patch.as_array().into_iter().flatten() {
        operation.get("value").into_iter().for_each(|it| collect(it, &mut values));
    }
    // A value may be a part of another one.
    sorted::sort_by_key(&mut values, |it| std::cmp::Reverse(it.len()));
    values.dedup();
    let mut shown = text.to_owned();
    for value in values {
        shown = shown.replace(&value, SHOWN);
    }
    shown
}

/// Collects the values that a string must not contain. Shorter ones would be found in any string.
fn collect(value: &Value, values: &mut Vec<String>) {
    let text = match value {
        Value::String(it) => it.clone(),
        Value::Number(it) => it.to_string(),
        Value::Array(items) => return items.iter().for_each(|it| collect(it, values)),
        Value::Object(map) => return map.values().for_each(|it| collect(it, values)),
        Value::Null | Value::Bool(_) => return,
    };
    if text.len() >= VALUE_LENGTH_MIN {
        values.push(text);
    }
}

/// Returns a diff for the log, without values.
pub fn loggable_diff(persistence: &PersistenceSettings, diff: &Diff) -> Option<Diff> {
    let hidden = persistence.hidden.as_deref()?;
    let annotations = ["metadata", "annotations"].map(str::to_owned).to_vec();
    let mut diff = diff.clone();
    for item in &mut diff {
        // Annotations may contain the whole object.
        for path in hidden.paths.iter().chain([&annotations]) {
            // The change is above the field, or below it.
            let rest = path.strip_prefix(item.field.as_slice()).map(<[String]>::to_vec);
            let rest = rest.or_else(|| item.field.starts_with(path).then(FieldPath::new));
            for value in [&mut item.old, &mut item.new] {
                edit(rest.as_slice(), value, &mut |_, leaf| *leaf = SHOWN.into());
            }
        }
    }
    Some(diff)
}

/// Calls a function with each value at or below these paths that is neither a map nor null.
fn edit(paths: &[FieldPath], value: &mut Value, change: &mut impl FnMut(&[String], &mut Value)) {
    for path in paths {
        let found = path.iter().try_fold(&mut *value, |it, key| it.get_mut(key.as_str()));
        if let Some(found) = found {
            edit_below(&mut path.clone(), found, change);
        }
    }
}

fn edit_below(
    path: &mut FieldPath,
    value: &mut Value,
    change: &mut impl FnMut(&[String], &mut Value),
) {
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                path.push(key.clone());
                edit_below(path, value, change);
                path.pop();
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            change(path, value);
        }
    }
}

/// Returns the digest of a value of an object. It identifies its key, so that a value is never compared with that of another key.
fn digest(hidden: &HiddenFields, body: &Value, path: &[String], value: &Value) -> String {
    let uid = body.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let (name, key) =
        hidden.key.as_ref().map_or(("uid", uid.as_bytes()), |it| (it.name(), it.bytes()));
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let content = serde_json::json!([uid, path, sorted]).to_string();
    // Keys of any length are accepted.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(content.as_bytes());
    let digest = mac.finalize().into_bytes();
    let digest = digest.get(..DIGEST_BYTES).unwrap_or_default();
    format!("{PREFIX}{name}:{}", URL_SAFE_NO_PAD.encode(digest))
}

#[cfg(test)]
mod tests;
