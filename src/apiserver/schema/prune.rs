//! Removes what a schema does not know, as the real server does it on every write of a custom resource.

use serde_json::Value;

use super::{Link, Schema, Shape, metadata};

/// What every object has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields from an object, and unknown metadata from it and from the objects inside of it.
///
/// Recursion ends with the value, whose depth is bounded by the parser of JSON.
pub(crate) fn prune(schema: &Schema, object: &mut Value) {
    if let Some(meta) = object.get_mut("metadata") {
        metadata::clean(meta);
    }
    walk(object, Some(schema), Mode { whole: true, keeps: schema.preserves_unknown });
}

/// Removes unknown fields from a part of an object; `whole`: from something with a kind and metadata of its own.
pub(crate) fn prune_part(schema: &Schema, value: &mut Value, whole: bool) {
    if whole && let Some(meta) = value.get_mut("metadata") {
        metadata::clean(meta);
    }
    walk(value, Some(schema), Mode { whole, keeps: schema.preserves_unknown });
}

#[derive(Clone, Copy)]
struct Mode {
    /// An object with metadata of its own, because it is the root or embedded.
    whole: bool,
    /// Unknown fields stay here.
    keeps: bool,
}

fn walk(value: &mut Value, schema: Option<&Schema>, Mode { whole, keeps }: Mode) {
    match value {
        Value::Object(fields) => {
            let Some(schema) = schema else {
                fields.clear();
                return;
            };
            fields.retain(|name, value| {
                if whole && META_FIELDS.contains(&name.as_str()) {
                    return true;
                }
                match child(schema, name) {
                    Child::Known(child) => {
                        descend(value, child);
                        true
                    }
                    Child::Unknown => keeps,
                }
            });
        }
        Value::Array(items) => {
            let of_items = schema.and_then(Schema::items);
            for item in items {
                match of_items {
                    // What nothing is said of is kept inside of what keeps unknown fields; and it is kept in the items, too.
                    None if keeps => {}
                    Some(schema) if keeps => {
                        walk(item, Some(schema), Mode { whole: schema.embedded, keeps });
                    }
                    schema => descend(item, schema),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn descend(value: &mut Value, schema: Option<&Schema>) {
    let embedded = schema.is_some_and(|it| it.embedded);
    if embedded && let Some(meta) = value.get_mut("metadata") {
        metadata::clean(meta);
    }
    let keeps = schema.is_some_and(|it| it.preserves_unknown);
    walk(value, schema, Mode { whole: embedded, keeps });
}

enum Child<'a> {
    /// `None`: allowed, but nothing is known of its fields.
    Known(Option<&'a Schema>),
    Unknown,
}

fn child<'a>(schema: &'a Schema, name: &str) -> Child<'a> {
    let Shape::Map { fields, rest, .. } = &schema.shape else { return Child::Unknown };
    match fields.get(name).or(rest.as_ref()) {
        Some(link) => Child::Known(Link::schema(link)),
        None => Child::Unknown,
    }
}

/// Removes fields that are `null` although they may not be and have no default: the real server takes them as left out.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| keep_field(schema, name, value)),
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keep_field(schema: &Schema, name: &str, value: &mut Value) -> bool {
    let Child::Known(Some(schema)) = child(schema, name) else { return true };
    if value.is_null() && !schema.nullable && schema.default.is_none() {
        return false;
    }
    drop_nulls(schema, value);
    true
}
