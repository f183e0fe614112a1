//! The children of an owner: those with its controller reference, and loose ones that match its selector.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    controllers::{
        cache::{Cache, ObjectKey, Update},
        write::{FieldEdit, Write},
    },
    labels, object,
};

/// The children of an owner, and the writes that keep this relation correct.
pub(crate) struct Claimed<'a> {
    pub(crate) children: Vec<(&'a ObjectKey, &'a Arc<Value>)>,
    /// Writes that adopt or release children.
    pub(crate) writes: Vec<Write>,
}

/// Returns the children of an owner with a label selector in `spec.selector`.
pub(crate) fn claim<'a>(
    cache: &'a Cache,
    owner: &'a ObjectKey,
    body: &'a Value,
    child: &'a str,
    kind: (&str, &str),
) -> Claimed<'a> {
    let selector = body.pointer("/spec/selector");
    let uid = object::meta(body, "uid");
    let (children, lost): (Vec<_>, Vec<_>) = cache
        .managed(uid, child)
        .partition(|(_, it)| selector.is_none() || labels::selects(selector, labels::of(it)));
    let mut writes = Vec::new();
    if !object::deleting(body) {
        let lost = lost.iter().filter(|(_, it)| !object::deleting(it));
        let release = || vec![FieldEdit::DropOwners(vec![uid.into()])];
        writes.extend(lost.map(|(key, it)| Write::change(key, it, release())));
        let strays = cache
            .loose(child, &owner.namespace)
            .filter(|(_, it)| !object::deleting(it) && labels::selects(selector, labels::of(it)));
        let adopt = || vec![FieldEdit::Adopt(reference(body, kind))];
        writes.extend(strays.map(|(key, it)| Write::change(key, it, adopt())));
    }
    Claimed { children, writes }
}

/// Returns a controller reference to an owner.
pub(crate) fn reference(owner: &Value, (api_version, kind): (&str, &str)) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": object::meta(owner, "name"),
        "uid": object::meta(owner, "uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Collects the owners of a resource that a change of themselves or of one of their children affects.
pub(crate) fn affected_owners(
    cache: &Cache,
    update: &Update<'_>,
    (parent, child): (&str, &str),
    found: &mut Vec<ObjectKey>,
) {
    if update.key.resource == parent {
        found.push(update.key.clone());
    }
    if update.key.resource != child {
        return;
    }
    let owners = update.owners().filter(|it| it.controller).filter_map(|it| cache.by_uid(&it.uid));
    found.extend(owners.filter(|(key, _)| key.resource == parent).map(|(key, _)| key.clone()));
    let stray = update.new.filter(|it| it.controller().is_none()).and_then(|it| it.body.as_ref());
    let Some(stray) = stray else { return };
    let labels = labels::of(stray);
    let takers = cache.within(parent, &update.key.namespace).filter(|(_, it)| {
        let body = it.body.as_ref();
        body.is_some_and(|it| labels::selects(it.pointer("/spec/selector"), labels))
    });
    found.extend(takers.map(|(key, _)| key.clone()));
}
