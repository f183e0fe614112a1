//! The metadata of custom resources and of embedded objects: only known fields, with their types.

use serde_json::Value;

use super::{Schema, SchemaShape};
use crate::{
    native::{self, OBJECT_META},
    refusal::path::{push_field, push_item},
};

/// Removes unknown and empty fields from metadata with valid types. Returns the paths of unknown fields.
pub(crate) fn clean(meta: &mut Value, path: &str) -> Vec<String> {
    let mut decoded = meta.clone();
    let unknown = native::decode_as(OBJECT_META, &mut decoded, path).unwrap_or_default();
    let Some(fields) = meta.as_object_mut() else { return unknown };
    // Fields keep the order of the client.
    fields.retain(|name, value| match decoded.get_mut(name) {
        Some(kept) => {
            *value = kept.take();
            true
        }
        None => false,
    });
    unknown
}

/// Returns the message about wrong types in metadata.
fn fault(meta: &Value, path: &str) -> Option<String> {
    if meta.is_null() {
        return None;
    }
    native::decode_as(OBJECT_META, &mut meta.clone(), path).err()
}

/// Returns the message about an object that cannot be decoded, because its metadata or that of an embedded object has wrong types.
///
/// The response has the status 400.
pub(crate) fn unreadable(schema: Option<&Schema>, object: &Value) -> Option<String> {
    let own = object.get("metadata").and_then(|it| fault(it, "metadata"));
    own.or_else(|| embedded(schema?, object, &mut String::new()))
}

/// Recurses into the parts of a value. The name of each part is appended to the path.
fn embedded(schema: &Schema, value: &Value, path: &mut String) -> Option<String> {
    if schema.embedded && !path.is_empty() {
        for name in ["apiVersion", "kind"] {
            if let Some(odd) = value.get(name).filter(|it| !it.is_string()) {
                return Some(format!("{path}.{name}: expected a string, got {odd}"));
            }
        }
        let at = format!("{path}.metadata");
        if let Some(text) = value.get("metadata").and_then(|it| fault(it, &at)) {
            return Some(text);
        }
    }
    let length = path.len();
    match (value, &schema.shape) {
        (Value::Object(values), SchemaShape::Map { fields, rest, .. }) => {
            for (name, value) in values {
                match fields.get(name) {
                    Some(_) => push_field(path, name),
                    None => push_item(path, name),
                }
                let schema =
                    fields.get(name).or(rest.as_ref()).and_then(super::SchemaOrRef::schema);
                let found = schema.and_then(|it| embedded(it, value, path));
                path.truncate(length);
                if found.is_some() {
                    return found;
                }
            }
            None
        }
        (Value::Array(items), SchemaShape::List { items: Some(link), .. }) => {
            let schema = link.schema()?;
            items.iter().enumerate().find_map(|(at, item)| {
                push_item(path, at);
                let found = embedded(schema, item, path);
                path.truncate(length);
                found
            })
        }
        _ => None,
    }
}
