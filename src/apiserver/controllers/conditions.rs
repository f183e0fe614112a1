//! Conditions in the status of objects.

use serde_json::{Value, json};

/// The desired state of one condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DesiredCondition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Returns the conditions of an object.
pub(crate) fn all(object: &Value) -> Vec<Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.cloned().unwrap_or_default()
}

/// Returns a condition by its type.
pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|it| it.get("type").and_then(Value::as_str) == Some(kind))
}

/// Returns whether a condition exists and is true.
pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|it| it.get("status").and_then(Value::as_str) == Some("True"))
}

/// Adds or replaces a condition. The time of its transition is kept if the status is the same.
pub(crate) fn put(conditions: &mut Vec<Value>, wanted: DesiredCondition<'_>, stamp: &str) {
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
