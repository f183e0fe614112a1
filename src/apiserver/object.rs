//! Small questions to a JSON object, and small changes of it.

use serde_json::{Map, Value};

/// A text inside the metadata; empty if it is not there.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// The metadata for changing; made if missing. `None` if it is something else than an object.
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

/// Sets the version, at its place among the fields: it shows where bytes around a mistake are shown.
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

/// Sets a field of a part, such as the spec, if there is such a part.
pub(crate) fn put_in(object: &mut Value, part: &str, field: &str, value: Value) {
    if let Some(part) = object.get_mut(part) {
        put(part, field, Some(value));
    }
}

/// Whether somebody still holds the object. Namespaces are held in their spec, too.
pub(crate) fn held(object: &Value) -> bool {
    let is_namespace = object.get("kind").and_then(Value::as_str) == Some("Namespace");
    !finalizers(object).is_empty()
        || (is_namespace && !strings(object, "/spec/finalizers").is_empty())
}

/// Whether a deleted object was given time that is not over: only who gave it lets it go.
pub(crate) fn has_time_left(object: &Value) -> bool {
    let seconds = number(object, "/metadata/deletionGracePeriodSeconds");
    seconds.is_some_and(|it| it > 0)
}

/// Whether the object is marked for deletion.
pub(crate) fn deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// The names of those who hold the object.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    strings(object, "/metadata/finalizers")
}

/// A text at this place; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number at this place.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The items of an array at this place; none if it is not there.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of an array.
pub(crate) fn strings(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(Value::as_str).map(String::from).collect()
}

/// A boolean; false if it is not there.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}
