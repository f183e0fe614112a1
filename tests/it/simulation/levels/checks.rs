//! The conditions that must hold in these worlds when no fault has happened for some time.

use std::collections::{BTreeMap, BTreeSet};

use kopf::testing::EXAMPLES;
use serde_json::Value;

use super::{
    super::{stored::Stored, wire::NAMESPACE},
    CHILDREN, Levels, PARENT, SCHEDULES, is_foreign, tuned, wanted,
};

/// Number of slots of each schedule that must have run at the end of the run, whose settling time is longer than these.
const SLOTS_AT_THE_END: u64 = 3;

/// By namespace and name.
type Children = BTreeMap<(String, String), Value>;

/// Checks the children of all objects, and that there are no others.
pub(in super::super) fn check_children(levels: &Levels) {
    let objects = levels.server.list(EXAMPLES);
    let children: Children =
        levels.server.list(CHILDREN).into_iter().map(|it| (place(&it), it)).collect();
    for object in &objects {
        check_object(levels, object, &children);
    }
    let uids: BTreeSet<_> = objects.iter().map(|it| Stored::read(it).uid).collect();
    for ((namespace, name), child) in &children {
        let Some(parent) = parent(child) else { continue };
        let is_left = levels.state.lock().removed.contains(parent) && namespace == super::FAR;
        if !uids.contains(parent) && !is_left {
            let rule =
                format!("at the end, {namespace}/{name} of {parent}, which is gone, is left");
            levels.history.complain(rule);
        }
    }
}

fn place(child: &Value) -> (String, String) {
    let field = |name: &str| child["metadata"][name].as_str().unwrap_or_default().to_owned();
    (field("namespace"), field("name"))
}

fn parent(child: &Value) -> Option<&str> {
    child["metadata"]["labels"][PARENT].as_str()
}

fn check_object(levels: &Levels, object: &Value, children: &Children) {
    let stored = Stored::read(object);
    let uid = stored.uid.as_str();
    let complain = |rule: String| levels.history.complain(format!("at the end, {uid} {rule}"));
    if stored.is_deleting {
        return complain("is still being deleted".into());
    }
    if !stored.is_held {
        complain("has no finalizer".into());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let x = object["spec"]["x"].as_u64().unwrap_or_default();
    let wanted = wanted((name, uid, x), &tuned(&levels.server));
    let is_blocked = wanted.keys().any(|it| children.get(it).is_some_and(is_foreign));
    if is_blocked {
        // Its calls fail, and report the reason; objects that they have applied before stay.
        return;
    }
    let own: BTreeSet<_> =
        children.iter().filter(|(_, it)| parent(it) == Some(uid)).map(|(place, _)| place).collect();
    let names: BTreeSet<_> = wanted.keys().collect();
    if own != names {
        complain(format!("has the children {own:?} instead of {names:?}"));
    }
    for (place, data) in &wanted {
        let Some(child) = children.get(place) else { continue };
        let has_data = ["x", "tune"].iter().all(|it| child["data"][it] == data[it]);
        let owners = child["metadata"]["ownerReferences"].as_array();
        let is_owned = owners.is_some_and(|it| it.iter().any(|it| it["uid"] == uid));
        if !has_data || is_owned != (place.0 == NAMESPACE) {
            complain(format!("has the child {child} instead of {data}"));
        }
    }
    let status = &object["status"];
    let seen = u64::try_from(wanted.len()).expect("a small number");
    if status["x"] != x || status["uid"] != uid || status["seen"] != seen {
        complain(format!("has the status {status}, with x = {x} and {seen} children"));
    }
}

/// Checks that the schedules run.
pub(in super::super) fn check_schedules(levels: &Levels, now: jiff::Timestamp) {
    let state = levels.state.lock();
    for (id, seconds) in SCHEDULES {
        let seconds = i64::try_from(seconds * (SLOTS_AT_THE_END + 1)).expect("a small number");
        let since = now - jiff::SignedDuration::from_secs(seconds);
        let slots = state.slots.keys().filter(|(it, _)| *it == id);
        let late = slots.filter(|(_, slot)| {
            let slot: jiff::Timestamp = slot.parse().expect("a timestamp");
            (since..=now).contains(&slot)
        });
        let count = u64::try_from(late.count()).expect("a small number");
        if count < SLOTS_AT_THE_END {
            let rule =
                format!("at the end, {count} slots of {id} have run in the last {seconds} s");
            levels.history.complain(rule);
        }
    }
}
