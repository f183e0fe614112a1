//! The limits on results of libraries: the same in both languages.

use serde_json::Value;

pub(super) use crate::scripting::values::limits::ITEMS_MAX;
use crate::scripting::{
    functions::outcome::{Datum, Failure},
    values::limits,
};

/// Checks that a result is not too large.
pub(super) fn within(datum: Datum, text_max: usize) -> Result<Datum, Failure> {
    let text = match &datum {
        Datum::Json(Value::String(text)) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Map(parts) => parts.iter().map(|(_, it)| it.len()).max().unwrap_or_default(),
        Datum::Json(value) => {
            let mut left = ITEMS_MAX;
            if !count(value, &mut left) {
                return Err(limits::too_many_items("the result", ITEMS_MAX).into());
            }
            0
        }
    };
    if text > text_max { Err(limits::too_long_text(text_max).into()) } else { Ok(datum) }
}

/// Returns whether the items of a value fit into what is left, and subtracts them.
fn count(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::Array(items) => take(left, items.len()) && items.iter().all(|it| count(it, left)),
        Value::Object(fields) => {
            take(left, fields.len()) && fields.values().all(|it| count(it, left))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn take(left: &mut usize, items: usize) -> bool {
    left.checked_sub(items).is_some_and(|it| {
        *left = it;
        true
    })
}

/// Returns whether two values are the same data: `1` equals `1.0`, and a null field differs from a missing one.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a)| b.get(key).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

/// Checks that a list with this many items may get one more.
pub(super) fn room_for(items: usize) -> Result<(), Failure> {
    if items < ITEMS_MAX {
        return Ok(());
    }
    Err(limits::too_many_items("the result", ITEMS_MAX).into())
}
