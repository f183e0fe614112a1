//! Whether a merged object fits the types of its kind, in the words that the real server has for it after a strategic merge.

use serde_json::Value;

use crate::schema::{Scalar, Schema, Shape};

/// The first value that cannot be taken; nothing if all can.
pub(super) fn fault(value: &Value, schema: &Schema) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match (&schema.shape, value) {
        (Shape::Any, _) => None,
        (Shape::Map { .. }, Value::Object(fields)) => fields
            .iter()
            .filter_map(|(name, value)| Some((value, schema.field(name)?)))
            .find_map(|(value, schema)| fault(value, schema)),
        (Shape::List { .. }, Value::Array(items)) => {
            let schema = schema.items()?;
            items.iter().find_map(|it| fault(it, schema))
        }
        (Shape::Map { fields, .. }, other) if fields.is_empty() => {
            Some(format!("cannot restore map from {}", go_kind(other)))
        }
        (Shape::Map { .. }, other) => {
            Some(format!("cannot restore struct from: {}", go_kind(other)))
        }
        (Shape::List { .. }, other) => {
            Some(format!("cannot restore slice from {}", go_kind(other)))
        }
        (Shape::Scalar(scalar), value) => scalar_fault(*scalar, value),
    }
}

fn scalar_fault(scalar: Scalar, value: &Value) -> Option<String> {
    let wanted = match (scalar, value) {
        // Both have decoders of their own, which take more than one type.
        (Scalar::IntOrText, _)
        | (Scalar::Text, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Integer | Scalar::Number, Value::Number(_)) => return None,
        (Scalar::Text, Value::Number(number)) if number.is_i64() => {
            return Some("cannot convert int64 to string".into());
        }
        (Scalar::Text, _) => "string",
        (Scalar::Boolean, _) => "bool",
        (Scalar::Integer, _) => "int32",
        (Scalar::Number, _) => "float64",
    };
    Some(format!("unrecognized type: {wanted}"))
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
