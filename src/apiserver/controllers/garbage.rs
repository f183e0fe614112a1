//! Garbage collection by owner references.
//!
//! An object is deleted when none of its owners exists. In a foreground deletion, the owner has a finalizer until the dependents
//! that block it are deleted. In a deletion that orphans, it has another finalizer until the dependents no longer refer to it.

use super::{
    Controller, NO_STEP, ReconcileResult,
    cache::{Cache, CachedObject, ObjectKey, OwnerReference, Update},
    time::DecisionTime,
    write::{FOREGROUND, FieldEdit, ORPHAN, Write},
};

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[], affected, reconcile, step: NO_STEP, start: &[] };

/// Events are never collected, as on a real cluster: there are many, and they expire.
const IGNORED: [&str; 2] = ["events", "events.events.k8s.io"];

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if IGNORED.contains(&update.key.resource.as_str()) {
        return;
    }
    let Some(latest) = update.latest() else { return };
    if update.new.is_some_and(|it| !it.owners.is_empty() || waits(it) || orphans(it)) {
        found.push(update.key.clone());
    }
    // Its dependents are affected if it has been deleted, or waits for them.
    let was_waiting = update.old.is_some_and(waits);
    let replaced = update.old.zip(update.new).is_some_and(|(old, new)| old.uid != new.uid);
    if update.new.is_none() || replaced || (waits(latest) && !was_waiting) {
        let gone = update.old.unwrap_or(latest);
        found.extend(cache.dependents(&gone.uid).map(|(key, _)| key.clone()));
    }
    // Its owners may wait for it.
    let owners = update.owners().filter_map(|it| cache.by_uid(&it.uid));
    found.extend(owners.filter(|(_, it)| waits(it)).map(|(key, _)| key.clone()));
}

fn waits(entry: &CachedObject) -> bool {
    entry.deleting && entry.held_by(FOREGROUND)
}

fn orphans(entry: &CachedObject) -> bool {
    entry.deleting && entry.held_by(ORPHAN)
}

/// The state of an owner, as far as it matters for a dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    Present,
    /// It exists, but waits for the deletion of its dependents.
    Waiting,
    Absent,
    /// Its kind is not served, or it is namespaced and the dependent is not: the dependent is kept.
    Unknown,
}

fn owner_state(cache: &Cache, dependent: &ObjectKey, owner: &OwnerReference) -> OwnerState {
    let Some(def) = cache.of_kind(&owner.api_version, &owner.kind) else {
        return OwnerState::Unknown;
    };
    if def.namespaced && dependent.namespace.is_empty() {
        return OwnerState::Unknown;
    }
    // An owner is looked up in the namespace of its dependent: owners in other namespaces are invalid.
    let namespace = if def.namespaced { dependent.namespace.as_str() } else { "" };
    match cache.get(&ObjectKey::new(&def.qualified(), namespace, &owner.name)) {
        Some(it) if it.uid == owner.uid && waits(it) => OwnerState::Waiting,
        Some(it) if it.uid == owner.uid => OwnerState::Present,
        Some(_) | None => OwnerState::Absent,
    }
}

fn reconcile(cache: &Cache, key: &ObjectKey, _moment: &DecisionTime) -> ReconcileResult {
    let Some(entry) = cache.get(key) else { return ReconcileResult::none() };
    let mut writes = Vec::new();
    if orphans(entry) {
        orphan_dependents(cache, key, entry, &mut writes);
    }
    if waits(entry) {
        let blocked = cache.dependents(&entry.uid).any(|(_, it)| blocks(it, &entry.uid));
        if !blocked {
            writes.push(change(key, entry, FieldEdit::DropFinalizer(FOREGROUND)));
        }
    }
    if !entry.deleting {
        writes.extend(delete_without_owners(cache, key, entry));
    }
    writes.into()
}

/// Removes the references to an owner that is deleted without its dependents.
fn orphan_dependents(
    cache: &Cache,
    key: &ObjectKey,
    entry: &CachedObject,
    writes: &mut Vec<Write>,
) {
    for (dependent, it) in cache.dependents(&entry.uid) {
        writes.push(change(dependent, it, FieldEdit::DropOwners(vec![entry.uid.clone()])));
    }
    writes.push(change(key, entry, FieldEdit::DropFinalizer(ORPHAN)));
}

fn blocks(dependent: &CachedObject, uid: &str) -> bool {
    dependent.owners.iter().any(|it| it.uid == uid && it.blocks)
}

/// Decides whether an object with these owners is deleted.
fn delete_without_owners(cache: &Cache, key: &ObjectKey, entry: &CachedObject) -> Vec<Write> {
    let states: Vec<(OwnerState, &OwnerReference)> =
        entry.owners.iter().map(|it| (owner_state(cache, key, it), it)).collect();
    let any = |wanted| states.iter().any(|(it, _)| *it == wanted);
    if states.is_empty() || any(OwnerState::Unknown) {
        return Vec::new();
    }
    if any(OwnerState::Present) {
        let lost = states.iter().filter(|(it, _)| *it != OwnerState::Present);
        let lost: Vec<String> = lost.map(|(_, owner)| owner.uid.clone()).collect();
        return if lost.is_empty() {
            Vec::new()
        } else {
            vec![change(key, entry, FieldEdit::DropOwners(lost))]
        };
    }
    let delete = |foreground| Write::Delete { at: key.clone(), uid: entry.uid.clone(), foreground };
    let mut dependents = cache.dependents(&entry.uid).peekable();
    if !any(OwnerState::Waiting) || dependents.peek().is_none() {
        return vec![delete(entry.held_by(FOREGROUND))];
    }
    // Its own dependents are deleted first. A cycle must not wait for itself.
    let mut writes = Vec::new();
    if dependents.any(|(_, it)| waits(it)) {
        writes.push(change(key, entry, FieldEdit::Unblock));
    }
    writes.push(delete(true));
    writes
}

fn change(key: &ObjectKey, entry: &CachedObject, edit: FieldEdit) -> Write {
    Write::Change { at: key.clone(), uid: entry.uid.clone(), edits: vec![edit] }
}
