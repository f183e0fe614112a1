//! References from one object to another.
//!
//! The contract is `tests/vectors/object-references.json`.

use serde_json::{Map, Value};

use crate::logic::object::ObjectRef;

/// Returns the reference to an object in a Kubernetes event. Empty parts are left out.
pub fn object(reference: &ObjectRef) -> Map<String, Value> {
    let parts = [
        ("apiVersion", reference.api_version.as_str()),
        ("kind", &reference.kind),
        ("name", &reference.name),
        ("uid", &reference.uid),
        ("namespace", reference.namespace.as_deref().unwrap_or_default()),
    ];
    let present = parts.into_iter().filter(|(_, value)| !value.is_empty());
    present.map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// The options of an owner reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The owner is the managing controller; `None` leaves the key out.
    pub controller: Option<bool>,
    /// In foreground deletions, the owner is deleted only after its dependents; `None` leaves the key out.
    pub block_owner_deletion: Option<bool>,
}

impl Default for Ownership {
    fn default() -> Self {
        Ownership { controller: Some(true), block_owner_deletion: Some(true) }
    }
}

/// Returns an entry of `metadata.ownerReferences` for an owner with this identity. Empty parts are left out.
pub fn owner_of(reference: &ObjectRef, ownership: Ownership) -> Map<String, Value> {
    let options = [
        ("controller", ownership.controller),
        ("blockOwnerDeletion", ownership.block_owner_deletion),
    ];
    let set = options.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
    let mut entry: Map<_, _> = set.collect();
    entry.extend(object(reference).into_iter().filter(|(key, _)| key != "namespace"));
    entry
}

/// Returns an entry of `metadata.ownerReferences` for this owner. Nulls are left out.
pub fn owner(body: &Value, ownership: Ownership) -> Map<String, Value> {
    let part = |key: &str| body.get(key).cloned().unwrap_or_default();
    let meta = |key: &str| body.pointer(&format!("/metadata/{key}")).cloned().unwrap_or_default();
    let parts = [
        ("controller", ownership.controller.into()),
        ("blockOwnerDeletion", ownership.block_owner_deletion.into()),
        ("apiVersion", part("apiVersion")),
        ("kind", part("kind")),
        ("name", meta("name")),
        ("uid", meta("uid")),
    ];
    let present = parts.into_iter().filter(|(_, value)| !value.is_null());
    present.map(|(key, value)| (key.to_owned(), value)).collect()
}
