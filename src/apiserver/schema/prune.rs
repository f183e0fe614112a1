//! Pruning: removes unknown fields, as the real server does on every write of a custom resource.

use serde_json::Value;

use super::{Schema, SchemaOrRef, SchemaShape, metadata};
use crate::refusal::path::{push_field, push_item};

/// The fields that every object has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields from an object, and unknown metadata from it and its embedded objects. Returns their paths.
///
/// The recursion ends with the value; the JSON parser bounds its depth.
pub(crate) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    prune_part(schema, object, true)
}

/// Removes unknown fields from a part of an object. `whole`: the part has a kind and metadata.
pub(crate) fn prune_part(schema: &Schema, value: &mut Value, whole: bool) -> Vec<String> {
    let mut pruning =
        Pruning { path: String::new(), unknown: Vec::new(), unknown_metadata: Vec::new() };
    pruning.enter(value, Some(schema), whole);
    let Pruning { mut unknown, mut unknown_metadata, .. } = pruning;
    unknown.sort();
    unknown_metadata.sort();
    unknown.extend(unknown_metadata);
    unknown
}

#[derive(Clone, Copy)]
struct Mode {
    /// The object is the root or embedded, so it has metadata.
    whole: bool,
    /// Unknown fields are kept here.
    keeps: bool,
}

struct Pruning {
    path: String,
    unknown: Vec<String>,
    /// Listed separately: metadata is known for all objects, without a schema.
    unknown_metadata: Vec<String>,
}

impl Pruning {
    fn enter(&mut self, value: &mut Value, schema: Option<&Schema>, whole: bool) {
        if whole && let Some(meta) = value.get_mut("metadata") {
            let length = self.path.len();
            push_field(&mut self.path, "metadata");
            self.unknown_metadata.extend(metadata::clean(meta, &self.path));
            self.path.truncate(length);
        }
        let keeps = schema.is_some_and(|it| it.preserves_unknown);
        self.walk(value, schema, Mode { whole, keeps });
    }

    fn descend(&mut self, value: &mut Value, schema: Option<&Schema>) {
        self.enter(value, schema, schema.is_some_and(|it| it.embedded));
    }

    fn walk(&mut self, value: &mut Value, schema: Option<&Schema>, mode: Mode) {
        let length = self.path.len();
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                push_field(&mut self.path, name);
                let kept = self.keep(name, value, schema, mode);
                if !kept {
                    self.unknown.push(self.path.clone());
                }
                self.path.truncate(length);
                kept
            }),
            Value::Array(items) => {
                let of_items = schema.and_then(Schema::items);
                for (at, item) in items.iter_mut().enumerate() {
                    push_item(&mut self.path, at);
                    match of_items {
                        // Below a field that keeps unknown fields, values without a schema are kept, also in the items of lists.
                        None if mode.keeps => {}
                        Some(schema) if mode.keeps => {
                            let mode = Mode { whole: schema.embedded, keeps: true };
                            self.walk(item, Some(schema), mode);
                        }
                        schema => self.descend(item, schema),
                    }
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns whether a field is kept, and prunes its value.
    fn keep(
        &mut self,
        name: &str,
        value: &mut Value,
        schema: Option<&Schema>,
        Mode { whole, keeps }: Mode,
    ) -> bool {
        let Some(schema) = schema else { return false };
        if whole && META_FIELDS.contains(&name) {
            return true;
        }
        match child(schema, name) {
            Child::Known(child) => {
                self.descend(value, child);
                true
            }
            Child::Unknown => keeps,
        }
    }
}

enum Child<'a> {
    /// The field is allowed; `None` if its own fields are unknown.
    Known(Option<&'a Schema>),
    Unknown,
}

fn child<'a>(schema: &'a Schema, name: &str) -> Child<'a> {
    let SchemaShape::Map { fields, rest, .. } = &schema.shape else { return Child::Unknown };
    match fields.get(name).or(rest.as_ref()) {
        Some(link) => Child::Known(SchemaOrRef::schema(link)),
        None => Child::Unknown,
    }
}

/// Removes fields that are `null`, not nullable, and without a default: the real server treats them as missing.
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
