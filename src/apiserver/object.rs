//! Access to the fields of JSON objects.

use serde_json::{Map, Value};

/// Returns a string in the metadata; empty if it is missing.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the metadata for writing; created if missing. `None` if it is not an object.
pub(crate) fn meta_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object
        .as_object_mut()?
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
}

/// Sets a field of the metadata.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(meta) = meta_mut(object) {
        meta.insert(field.into(), value.into());
    }
}

/// Sets the version at its usual place among the fields, because error messages may show the surrounding bytes.
pub(crate) fn set_version(object: &mut Value, revision: u64) {
    let Some(meta) = meta_mut(object) else { return };
    let place = meta.keys().position(|it| it == "uid").map(|it| it.saturating_add(1));
    let version = revision.to_string();
    match place {
        Some(place) if !meta.contains_key("resourceVersion") => {
            meta.shift_insert(place, "resourceVersion".into(), version.into());
        }
        _ => {
            meta.insert("resourceVersion".into(), version.into());
        }
    }
}

/// Sets a top-level field, or removes it.
pub(crate) fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.into(), value),
        None => fields.shift_remove(field),
    };
}

/// Sets a field of a part, such as the spec, if the object has this part.
pub(crate) fn put_in(object: &mut Value, part: &str, field: &str, value: Value) {
    if let Some(part) = object.get_mut(part) {
        put(part, field, Some(value));
    }
}

/// Returns whether the object has finalizers. Those in the spec of a namespace count, too.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    let is_namespace = object.get("kind").and_then(Value::as_str) == Some("Namespace");
    !finalizers(object).is_empty()
        || (is_namespace && !strings(object, "/spec/finalizers").is_empty())
}

/// Returns whether a deleted object has a grace period that is not over: only the kubelet ends it.
pub(crate) fn has_grace_period(object: &Value) -> bool {
    let seconds = number(object, "/metadata/deletionGracePeriodSeconds");
    seconds.is_some_and(|it| it > 0)
}

/// Returns whether the object is marked for deletion.
pub(crate) fn deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// Returns the finalizers of the object.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    strings(object, "/metadata/finalizers")
}

/// Returns the string at a pointer; empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the integer at a pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Returns the items of the array at a pointer; none if it is missing.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the strings in the array at a pointer.
pub(crate) fn strings(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(Value::as_str).map(String::from).collect()
}

/// Returns the boolean at a pointer; false if it is missing.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}
