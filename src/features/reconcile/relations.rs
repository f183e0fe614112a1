//! Keeps the children of reconcile handlers in indexes, and calls the handlers when a related object changes.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{CallReason, CallServices, name_key};
use crate::handling::time_slice::TimeSlice;
use crate::logic::{
    background::indexing::{Contribution, IndexItem, IndexKey, Owner},
    handlers::{
        handler::{Handler, Relation, Role},
        outcome::Outcome,
    },
    object::{Object, resource::Resource},
    reconcile,
};

/// Returns the contribution of an object to the index of its relation, if no function determines it.
pub fn own_contribution(
    services: &CallServices,
    handler: &Handler,
    (object, resource): (&Object, &Resource),
) -> Option<Contribution> {
    let Relation { labels, role, .. } = handler.relation.as_ref()?;
    let packed = || services.reconcilers.related(&handler.id).pack(object, resource);
    match role {
        Role::Owned => {
            let Some(parent) = reconcile::parent_of(object.header(), labels) else {
                return Some(Contribution::Remove);
            };
            Some(Contribution::Replace(vec![(IndexKey::text(parent), packed())]))
        }
        Role::Parent => {
            let uid = object.header().uid.as_deref().unwrap_or_default();
            Some(Contribution::Replace(vec![(IndexKey::text(uid), packed())]))
        }
        Role::All => Some(Contribution::Replace(vec![(IndexKey::Null, version(object))])),
        Role::Mapped => None,
    }
}

/// Returns the contribution by the function of a watched kind, which this takes from its outcome: the objects that it names.
///
/// # Errors
/// If the function returned an invalid value.
pub fn mapped_contribution(outcome: &mut Outcome, object: &Object) -> Result<Contribution, String> {
    if outcome.error.is_some() {
        return Ok(Contribution::Remove);
    }
    let named = outcome.entries.take().map(|entries| {
        let field = |(key, value): (Value, Value)| Some((key.as_str()?.to_owned(), value));
        Value::Object(entries.into_iter().filter_map(field).collect())
    });
    let home = object.header().namespace.as_deref();
    let keys = match named.or(outcome.result.take()) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => {
            items.iter().map(|it| named_key(it, home)).collect::<Result<_, _>>()?
        }
        Some(Value::Object(fields)) if fields.is_empty() => Vec::new(),
        Some(one) => vec![named_key(&one, home)?],
    };
    let value = version(object);
    Ok(Contribution::Replace(keys.into_iter().map(|key| (key, value.clone())).collect()))
}

fn named_key(value: &Value, home: Option<&str>) -> Result<IndexKey, String> {
    let wrong =
        || format!("`map` must return {{ name, namespace }}, a list of them, or nil; not {value}");
    if let Some(name) = value.as_str() {
        return Ok(name_key(home, name));
    }
    let name = value.get("name").and_then(Value::as_str).ok_or_else(wrong)?;
    match value.get("namespace") {
        None => Ok(name_key(home, name)),
        Some(Value::Null) => Ok(name_key(None, name)),
        Some(Value::String(namespace)) => Ok(name_key(Some(namespace), name)),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(wrong())
        }
    }
}

/// Returns what differs after each change of an object.
fn version(object: &Object) -> IndexItem {
    let version = object.header().resource_version.as_deref().unwrap_or_default();
    IndexItem::Packed(version.as_bytes().into())
}

/// Applies a contribution to the index of a relation, and calls the handler for the objects that are concerned.
pub async fn apply(
    services: &CallServices,
    handler: &Handler,
    owner: &Owner,
    contribution: Contribution,
) {
    let Some(Relation { reconciler, role, .. }) = &handler.relation else { return };
    let Some(index) = services.indexes.get(&handler.id) else { return };
    let reason = if *role == Role::Owned { CallReason::Child } else { CallReason::Watched };
    let mut slice = TimeSlice::start();
    for key in &index.apply_and_compare(owner, contribution).await {
        services.reconcilers.request(reconciler, key, reason);
        slice.yield_if_over().await;
    }
}

/// Removes the contributions of a deleted object from all indexes.
pub async fn remove(services: &CallServices, handlers: &[Arc<Handler>], owner: &Owner) {
    for handler in handlers.iter().filter(|it| it.relation.is_some()) {
        apply(services, handler, owner, Contribution::Remove).await;
    }
    services.indexes.remove(owner).await;
}
