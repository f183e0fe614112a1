//! Conditions in the status of objects.

use serde_json::{Value, json};

/// One condition as it shall be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// The conditions of an object.
pub(crate) fn all(object: &Value) -> Vec<Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.cloned().unwrap_or_default()
}

/// A condition by its type.
pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|it| it.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether a condition is there and true.
pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|it| it.get("status").and_then(Value::as_str) == Some("True"))
}

/// Puts a condition in its place. The time of its transition stays if the status does.
pub(crate) fn put(conditions: &mut Vec<Value>, wanted: Wanted<'_>, stamp: &str) {
    let is_it = |it: &&mut Value| it.get("type").and_then(Value::as_str) == Some(wanted.kind);
    let mut condition = json!({
        "type": wanted.kind,
        "status": wanted.status,
        "lastTransitionTime": stamp,
        "reason": wanted.reason,
        "message": wanted.message,
    });
    if let Some(fields) = condition.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    let Some(old) = conditions.iter_mut().find(is_it) else {
        conditions.push(condition);
        return;
    };
    if old.get("status").and_then(Value::as_str) == Some(wanted.status)
        && let Some(since) = old.get("lastTransitionTime")
        && let Some(fields) = condition.as_object_mut()
    {
        fields.insert("lastTransitionTime".into(), since.clone());
    }
    *old = condition;
}
