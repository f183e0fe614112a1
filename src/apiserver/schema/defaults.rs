//! Defaulting: fills in the defaults of a schema, as the real server does on every write and every read of a custom resource.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Schema, SchemaOrRef, SchemaShape, prune};

/// Fills in missing fields. A `null` in a field that is not nullable counts as missing: it is replaced by the default, or removed.
///
/// The recursion ends with the value or the default; the JSON parser bounds the depth of both.
pub(crate) fn default(schema: &Schema, object: &mut Value) {
    prune::drop_nulls(schema, object);
    fill(schema, object);
}

fn fill(schema: &Schema, value: &mut Value) {
    match (value, &schema.shape) {
        (Value::Object(values), SchemaShape::Map { fields, rest, .. }) => {
            fill_map(fields, rest.as_ref(), values);
        }
        (Value::Array(items), SchemaShape::List { items: Some(link), .. }) => {
            let Some(schema) = link.schema() else { return };
            for item in items {
                fill_slot(schema, item);
            }
        }
        _ => {}
    }
}

fn fill_map(
    fields: &BTreeMap<String, SchemaOrRef>,
    rest: Option<&SchemaOrRef>,
    values: &mut Map<String, Value>,
) {
    for (name, link) in fields {
        let Some(default) = link.schema().and_then(|it| it.default.as_ref()) else { continue };
        if !values.contains_key(name) {
            values.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in values {
        if let Some(schema) = fields.get(name).or(rest).and_then(SchemaOrRef::schema) {
            fill_slot(schema, value);
        }
    }
}

/// Fills in a value that exists, which may be `null`.
fn fill_slot(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    fill(schema, value);
}
