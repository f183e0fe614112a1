//! Garbage collection by owner references.
//!
//! An object goes when none of its owners is there any more. A deleted owner that waits for its dependents carries a finalizer
//! until those that block it are gone; one whose dependents are to stay carries another until they have forgotten it.

use super::{
    Controller, NO_STEP, Plan,
    time::Moment,
    world::{Key, News, Owner, Seen, World},
    write::{Edit, FOREGROUND, ORPHAN, Write},
};

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[], concerns, decide, step: NO_STEP, start: &[] };

/// Events are never collected, as in the real collector: there are many, and they go by age.
const IGNORED: [&str; 2] = ["events", "events.events.k8s.io"];

fn concerns(world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    if IGNORED.contains(&news.key.resource.as_str()) {
        return;
    }
    let Some(latest) = news.latest() else { return };
    if news.new.is_some_and(|it| !it.owners.is_empty() || waits(it) || orphans(it)) {
        found.push(news.key.clone());
    }
    // Its dependents must know that it is gone or going.
    let was_waiting = news.old.is_some_and(waits);
    let replaced = news.old.zip(news.new).is_some_and(|(old, new)| old.uid != new.uid);
    if news.new.is_none() || replaced || (waits(latest) && !was_waiting) {
        let gone = news.old.unwrap_or(latest);
        found.extend(world.dependents(&gone.uid).map(|(key, _)| key.clone()));
    }
    // Its owners may wait for it.
    let owners = news.owners().filter_map(|it| world.by_uid(&it.uid));
    found.extend(owners.filter(|(_, it)| waits(it)).map(|(key, _)| key.clone()));
}

fn waits(seen: &Seen) -> bool {
    seen.deleting && seen.held_by(FOREGROUND)
}

fn orphans(seen: &Seen) -> bool {
    seen.deleting && seen.held_by(ORPHAN)
}

/// What an owner means for its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Solid,
    /// It is there, but waits for its dependents to go.
    Waiting,
    Absent,
    /// Its kind is not served, or a cluster-scoped object cannot have it: nothing can be said.
    Unknown,
}

fn standing(world: &World, dependent: &Key, owner: &Owner) -> Standing {
    let Some(def) = world.of_kind(&owner.api_version, &owner.kind) else {
        return Standing::Unknown;
    };
    if def.namespaced && dependent.namespace.is_empty() {
        return Standing::Unknown;
    }
    // An owner is looked for in the namespace of its dependent: one elsewhere does not count.
    let namespace = if def.namespaced { dependent.namespace.as_str() } else { "" };
    match world.get(&Key::new(&def.qualified(), namespace, &owner.name)) {
        Some(it) if it.uid == owner.uid && waits(it) => Standing::Waiting,
        Some(it) if it.uid == owner.uid => Standing::Solid,
        Some(_) | None => Standing::Absent,
    }
}

fn decide(world: &World, key: &Key, _moment: &Moment) -> Plan {
    let Some(seen) = world.get(key) else { return Plan::none() };
    let mut writes = Vec::new();
    if orphans(seen) {
        release(world, key, seen, &mut writes);
    }
    if waits(seen) {
        let blocked = world.dependents(&seen.uid).any(|(_, it)| blocks(it, &seen.uid));
        if !blocked {
            writes.push(change(key, seen, Edit::DropFinalizer(FOREGROUND)));
        }
    }
    if !seen.deleting {
        writes.extend(judge(world, key, seen));
    }
    writes.into()
}

/// Its dependents stay, without it.
fn release(world: &World, key: &Key, seen: &Seen, writes: &mut Vec<Write>) {
    for (dependent, it) in world.dependents(&seen.uid) {
        writes.push(change(dependent, it, Edit::DropOwners(vec![seen.uid.clone()])));
    }
    writes.push(change(key, seen, Edit::DropFinalizer(ORPHAN)));
}

fn blocks(dependent: &Seen, uid: &str) -> bool {
    dependent.owners.iter().any(|it| it.uid == uid && it.blocks)
}

/// What becomes of an object with these owners.
fn judge(world: &World, key: &Key, seen: &Seen) -> Vec<Write> {
    let standings: Vec<(Standing, &Owner)> =
        seen.owners.iter().map(|it| (standing(world, key, it), it)).collect();
    let any = |wanted| standings.iter().any(|(it, _)| *it == wanted);
    if standings.is_empty() || any(Standing::Unknown) {
        return Vec::new();
    }
    if any(Standing::Solid) {
        let lost = standings.iter().filter(|(it, _)| *it != Standing::Solid);
        let lost: Vec<String> = lost.map(|(_, owner)| owner.uid.clone()).collect();
        return if lost.is_empty() {
            Vec::new()
        } else {
            vec![change(key, seen, Edit::DropOwners(lost))]
        };
    }
    let delete = |foreground| Write::Delete { at: key.clone(), uid: seen.uid.clone(), foreground };
    let mut dependents = world.dependents(&seen.uid).peekable();
    if !any(Standing::Waiting) || dependents.peek().is_none() {
        return vec![delete(seen.held_by(FOREGROUND))];
    }
    // It goes with its own dependents first. A circle must not wait for itself.
    let mut writes = Vec::new();
    if dependents.any(|(_, it)| waits(it)) {
        writes.push(change(key, seen, Edit::Unblock));
    }
    writes.push(delete(true));
    writes
}

fn change(key: &Key, seen: &Seen, edit: Edit) -> Write {
    Write::Change { at: key.clone(), uid: seen.uid.clone(), edits: vec![edit] }
}
