//! The metadata of custom resources, and of objects inside of them: only fields that exist, with the types they have.

use serde_json::{Map, Value};

use super::{Schema, Shape, decoding};
use crate::refusal::{
    go,
    path::{push_field, push_item},
};

const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
const OWNER_FIELDS: [&str; 6] =
    ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];
const WRITER_FIELDS: [&str; 7] =
    ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"];

/// Removes what is not known, and what is empty, from metadata whose types are right.
pub(crate) fn clean(meta: &mut Value) {
    let Some(fields) = meta.as_object_mut() else { return };
    fields.retain(|name, value| {
        FIELDS.contains(&name.as_str()) && !is_empty(value) && {
            match name.as_str() {
                "labels" | "annotations" => texts(value),
                "ownerReferences" => items(value, owner),
                "managedFields" => {
                    items(value, |it| it.retain(|name, _| WRITER_FIELDS.contains(&name.as_str())));
                }
                _ => {}
            }
            true
        }
    });
}

/// What is left out when Go writes it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
        Value::Number(it) => it.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// A label without a value has the empty one.
fn texts(value: &mut Value) {
    let Some(fields) = value.as_object_mut() else { return };
    for (_, value) in fields {
        if value.is_null() {
            *value = Value::String(String::new());
        }
    }
}

fn items(value: &mut Value, change: impl Fn(&mut Map<String, Value>)) {
    let items = value.as_array_mut().into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(change);
}

fn owner(fields: &mut Map<String, Value>) {
    fields.retain(|name, value| OWNER_FIELDS.contains(&name.as_str()) && !value.is_null());
    for name in ["apiVersion", "kind", "name", "uid"] {
        if !fields.contains_key(name) {
            fields.insert(name.into(), Value::String(String::new()));
        }
    }
}

/// Why an object cannot be read: metadata of wrong types, its own or that of an embedded object.
///
/// The real server answers with status 400 and `KIND in version "VERSION" cannot be handled as a KIND: `, then this text.
pub(crate) fn unreadable(schema: Option<&Schema>, object: &Value) -> Option<String> {
    let own = object.get("metadata").and_then(decoding::complaint);
    own.or_else(|| embedded(schema?, object, &mut String::new()))
}

/// Calls itself for a part of the value, with its name put at the end of the path.
fn embedded(schema: &Schema, value: &Value, path: &mut String) -> Option<String> {
    if schema.embedded && !path.is_empty() {
        for name in ["apiVersion", "kind"] {
            if let Some(odd) = value.get(name).filter(|it| !it.is_string()) {
                return Some(format!(
                    "{path}.{name}: Invalid value: {}: must be a string",
                    go::value(odd)
                ));
            }
        }
        if let Some(meta) = value.get("metadata")
            && let Some(text) = decoding::complaint(meta)
        {
            return Some(format!("{path}.metadata: Invalid value: {}: {text}", go::value(meta)));
        }
    }
    let length = path.len();
    match (value, &schema.shape) {
        (Value::Object(values), Shape::Map { fields, rest, .. }) => {
            for (name, value) in values {
                match fields.get(name) {
                    Some(_) => push_field(path, name),
                    None => push_item(path, name),
                }
                let schema = fields.get(name).or(rest.as_ref()).and_then(super::Link::schema);
                let found = schema.and_then(|it| embedded(it, value, path));
                path.truncate(length);
                if found.is_some() {
                    return found;
                }
            }
            None
        }
        (Value::Array(items), Shape::List { items: Some(link), .. }) => {
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
