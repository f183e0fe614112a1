//! JSON values as the state format compares them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Deep equality in which numbers and booleans compare by value: `1`, `1.0` and `true` are equal.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::Bool(_) | Value::Number(_), Value::Bool(_) | Value::Number(_)) => {
            numeric(a).zip(numeric(b)).is_some_and(|(a, b)| numbers_equal(&a, &b))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => false,
    }
}

fn numeric(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(it) => Some(Number::from(u8::from(*it))),
        Value::Number(it) => Some(it.clone()),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn numbers_equal(a: &Number, b: &Number) -> bool {
    if a.is_f64() || b.is_f64() {
        a.as_f64().partial_cmp(&b.as_f64()) == Some(Ordering::Equal)
    } else {
        a == b
    }
}
