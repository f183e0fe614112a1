//! Who manages what: children by their controller reference, and stray ones that match the selector.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    controllers::{
        world::{Key, News, World},
        write::{Edit, Write},
    },
    labels, object,
};

/// What an owner manages, and what is to be done so that it stays right.
pub(crate) struct Claimed<'a> {
    pub(crate) children: Vec<(&'a Key, &'a Arc<Value>)>,
    /// Adoptions and releases.
    pub(crate) writes: Vec<Write>,
}

/// The children of an owner with a label selector in `spec.selector`.
pub(crate) fn claim<'a>(
    world: &'a World,
    owner: &'a Key,
    body: &'a Value,
    child: &'a str,
    kind: (&str, &str),
) -> Claimed<'a> {
    let selector = body.pointer("/spec/selector");
    let uid = object::meta(body, "uid");
    let (children, lost): (Vec<_>, Vec<_>) = world
        .managed(uid, child)
        .partition(|(_, it)| selector.is_none() || labels::selects(selector, labels::of(it)));
    let mut writes = Vec::new();
    if !object::deleting(body) {
        let lost = lost.iter().filter(|(_, it)| !object::deleting(it));
        let release = || vec![Edit::DropOwners(vec![uid.into()])];
        writes.extend(lost.map(|(key, it)| Write::change(key, it, release())));
        let strays = world
            .loose(child, &owner.namespace)
            .filter(|(_, it)| !object::deleting(it) && labels::selects(selector, labels::of(it)));
        let adopt = || vec![Edit::Adopt(reference(body, kind))];
        writes.extend(strays.map(|(key, it)| Write::change(key, it, adopt())));
    }
    Claimed { children, writes }
}

/// The reference to a managing owner.
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

/// Which owners of a resource a change of itself or of one of its children concerns.
pub(crate) fn concerned(
    world: &World,
    news: &News<'_>,
    (parent, child): (&str, &str),
    found: &mut Vec<Key>,
) {
    if news.key.resource == parent {
        found.push(news.key.clone());
    }
    if news.key.resource != child {
        return;
    }
    let owners = news.owners().filter(|it| it.controller).filter_map(|it| world.by_uid(&it.uid));
    found.extend(owners.filter(|(key, _)| key.resource == parent).map(|(key, _)| key.clone()));
    let stray = news.new.filter(|it| it.controller().is_none()).and_then(|it| it.body.as_ref());
    let Some(stray) = stray else { return };
    let labels = labels::of(stray);
    let takers = world.within(parent, &news.key.namespace).filter(|(_, it)| {
        let body = it.body.as_ref();
        body.is_some_and(|it| labels::selects(it.pointer("/spec/selector"), labels))
    });
    found.extend(takers.map(|(key, _)| key.clone()));
}
