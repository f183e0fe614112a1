//! Recognizes the object that a completed change leaves behind, without its tree: no handler has anything to do about it.
//!
//! Most events of an operator show its own patches. What the header and a comparison of the text do not prove is left to a cycle.
//! Part of step 8 of the walk. Before: `reactor/object/conclusion.rs`. After: `reactor/object/expectation.rs`, which recognizes the
//! events of the object.

use kopf_json::values;
use serde_json::{Map, Value};

use super::{failed::own_prefix, registry::ResourceHandlers};
use crate::logic::{
    handlers::handler::Filters,
    object::{Header, Object, annotations, essence},
};
use crate::settings::{DiffBaseStorage, PersistenceSettings};

/// Returns whether a cycle would certainly do nothing about an object, because its essence is this one, which was handled. False is
/// inconclusive.
pub fn is_settled(
    persistence: &PersistenceSettings,
    handlers: &ResourceHandlers,
    object: &Object,
    essence: &Value,
) -> bool {
    let ResourceHandlers { watching, indexing, spawning, extra_fields, .. } = handlers;
    let is_for_changes = watching.is_empty() && indexing.is_empty() && spawning.is_empty();
    is_for_changes
        && extra_fields.iter().all(|it| essence::is_content(it))
        && persistence.hidden.is_none()
        && keeps_finalizer(persistence, handlers, object.header())
        && has_only_essence(persistence, object.header(), essence)
        && has_essence(object, essence)
}

/// Returns whether the finalizer is certainly neither missing nor left over.
fn keeps_finalizer(
    persistence: &PersistenceSettings,
    handlers: &ResourceHandlers,
    header: &Header,
) -> bool {
    let mut requiring = handlers.changing.iter().filter(|it| it.requires_finalizer()).peekable();
    let is_held = header.finalizers.contains(&persistence.finalizer);
    header.deletion_timestamp.is_none()
        && is_held == requiring.peek().is_some()
        && requiring.all(|it| it.filters == Filters::default())
}

/// Returns whether the operator's annotations are certainly this essence, and nothing else.
fn has_only_essence(persistence: &PersistenceSettings, header: &Header, essence: &Value) -> bool {
    let DiffBaseStorage::Annotations(own) = &persistence.diffbase_storage else { return false };
    let place = annotations::name_v2(&own.prefix, &own.key);
    let prefix = own_prefix(&persistence.progress_storage).unwrap_or(&own.prefix);
    let is_own = |it: &str| it.strip_prefix(prefix).is_some_and(|it| it.starts_with('/'));
    let all = &header.annotations;
    // Those of replica sets have other names.
    header.kind != "ReplicaSet"
        && all.keys().filter(|it| is_own(it)).all(|it| *it == place || annotations::is_marker(it))
        && all.get(&place).and_then(Value::as_str).map(str::trim_end)
            == Some(&values::encode(essence))
}

/// Returns whether an object certainly has this essence. Handlers watch no fields that are not part of the essence anyway.
fn has_essence(object: &Object, essence: &Value) -> bool {
    let Some(essence) = essence.as_object() else { return false };
    let metadata = |key: &str| essence.get("metadata").and_then(|it| it.get(key)?.as_object());
    let is_same = |all: &Map<String, Value>, key: &str| match metadata(key) {
        Some(part) => part == all,
        None => all.is_empty(),
    };
    let header = object.header();
    is_same(&header.labels, "labels")
        && is_same(&annotations::content(&header.annotations), "annotations")
        && object.has_exactly(essence, &essence::SYSTEM)
}

#[cfg(test)]
mod tests;
