//! Values as Go formats them, for cells of string columns.

use serde_json::Value;

use crate::refusal::go;

/// Formats a value: strings as they are, lists and maps as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(number)) => go::float_within(number, &(1e-4..1e6), 2),
            (None, None) => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => go::json(value),
    }
}
