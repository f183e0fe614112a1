//! Decides whether a namespace is still served.

use serde_json::Value;

use crate::logic::object::reason::EventType;

/// The effect of a namespace event on the streams in the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// The namespace exists; if it is terminating, its conditions are not known yet.
    Served,
    /// The namespace is terminating, but still contains objects to handle; one line for each reason.
    Pending(Vec<String>),
    /// The namespace is empty or gone.
    Gone,
}

/// Decides by the type of the event and the namespace in it.
///
/// A terminating namespace is served until its conditions report that it is empty: the operators that serve its objects must remove
/// their finalizers.
pub fn namespace_state(event_type: Option<EventType>, namespace: &Value) -> NamespaceState {
    if event_type == Some(EventType::Deleted) {
        return NamespaceState::Gone;
    }
    let is_marked =
        namespace.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null());
    let conditions = namespace.pointer("/status/conditions").and_then(Value::as_array);
    let Some(conditions) = conditions.filter(|it| is_marked && !it.is_empty()) else {
        return NamespaceState::Served;
    };
    let text =
        |it: &Value, key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = namespace.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let blockers = conditions.iter().filter(|it| text(it, "status") == "True").map(|it| {
        let (reason, message) = (text(it, "reason"), text(it, "message"));
        format!("Namespace '{name}' termination pending: {reason}: {message}")
    });
    let blockers = blockers.collect::<Vec<_>>();
    if blockers.is_empty() { NamespaceState::Gone } else { NamespaceState::Pending(blockers) }
}
