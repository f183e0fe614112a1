//! What was seen, held against what was expected: calls, patches, final objects, and when.

use serde_json::{Map, Value, json};

/// What a played scenario left behind.
pub(crate) struct Transcript {
    /// Handler calls in order, each with `t` and kwargs.
    pub(crate) calls: Vec<Value>,
    /// PATCH requests in order, each with `t`.
    pub(crate) patches: Vec<Value>,
    /// The final objects.
    pub(crate) objects: Vec<Value>,
}

impl Transcript {
    /// Compares with the `expected` of a vector.
    pub(super) fn compare(&self, expected: &Value) -> Result<(), String> {
        let trace = expected["trace"].as_array().cloned().unwrap_or_default();
        let of_kind = |key: &str| {
            trace.iter().filter(|it| it.get(key).is_some()).cloned().collect::<Vec<_>>()
        };
        let calls = of_kind("call").into_iter().map(without_later).collect::<Vec<_>>();
        let own = self.calls.iter().zip(calls.iter().map(Some).chain(std::iter::repeat(None)));
        let own = own.map(|(own, expected)| only_asked(own, expected)).collect::<Vec<_>>();
        sequence("call", &own, &calls)?;
        let flat = |it: Value| {
            let mut patch = it["patch"].clone();
            patch["t"] = it["t"].clone();
            patch
        };
        sequence(
            "patch",
            &self.patches,
            &of_kind("patch").into_iter().map(flat).collect::<Vec<_>>(),
        )?;
        let objects = expected["objects"].as_array().cloned().unwrap_or_default();
        sequence("object", &self.objects, &objects)
    }
}

fn sequence(what: &str, own: &[Value], expected: &[Value]) -> Result<(), String> {
    for (index, (own, expected)) in own.iter().zip(expected).enumerate() {
        let (own, expected) = (normal(own), normal(expected));
        if !same(&own, &expected) {
            return Err(format!("{what} #{index}:\n   got      {own}\n   expected {expected}"));
        }
    }
    if own.len() == expected.len() {
        return Ok(());
    }
    let (more, verb) =
        if own.len() > expected.len() { (own, "too many") } else { (expected, "missing") };
    let at = own.len().min(expected.len());
    Err(format!("{verb} {what}s: {} instead of {}, first {}", own.len(), expected.len(), more[at]))
}

/// Compares numbers by value: `1` is `1.0` on the virtual clock.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap_or(0.0) - b.as_f64().unwrap_or(1.0)).abs() < 0.000_5
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// JSON texts inside of strings are parsed, diffs are sorted.
fn normal(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('{') => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        Value::Array(list) => Value::Array(list.iter().map(normal).collect()),
        Value::Object(map) => {
            let mut normal =
                map.iter().map(|(key, it)| (key.clone(), normal(it))).collect::<Map<_, _>>();
            if let Some(Value::Array(diff)) = normal.get_mut("diff") {
                diff.sort_by_key(|it| (it[1].to_string(), it[0].to_string()));
            }
            Value::Object(normal)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What the reference fills in when a call ends is of no interest.
fn without_later(mut call: Value) -> Value {
    if let Some(map) = call.as_object_mut() {
        for key in ["cancelled_at", "stopped_at", "stopped_reason"] {
            map.shift_remove(key);
        }
    }
    call
}

/// Our calls carry all kwargs; the trace only those the scenario asked to see.
fn only_asked(own: &Value, expected: Option<&Value>) -> Value {
    let Some(expected) = expected.and_then(Value::as_object) else { return own.clone() };
    let own = own.as_object().cloned().unwrap_or_default();
    Value::Object(own.into_iter().filter(|(key, _)| expected.contains_key(key)).collect())
}

/// A diff as the vectors write it.
pub(super) fn diff(diff: &kopf::logic::diff::Diff) -> Value {
    diff.iter().map(|it| json!([it.operation.as_str(), it.field, it.old, it.new])).collect()
}
