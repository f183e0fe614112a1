//! The end of a CRD: its objects go first.
//!
//! The server marks a deleted definition with a finalizer; here it is let go when there are no objects left.

use serde_json::Value;

use super::{
    Controller, NO_STEP, Plan,
    conditions::{self, Wanted},
    time::Moment,
    world::{Key, News, World},
    write::{Edit, Write, set},
};
use crate::resource::CRDS;

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[CRDS], concerns, decide, step: NO_STEP, start: &[] };

fn concerns(world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    if news.key.resource == CRDS {
        found.push(news.key.clone());
        return;
    }
    // A definition is named after its resource.
    let definition = Key::new(CRDS, "", &news.key.resource);
    if world.get(&definition).is_some_and(|it| it.deleting) {
        found.push(definition);
    }
}

fn decide(world: &World, key: &Key, moment: &Moment) -> Plan {
    let seen = world.get(key).filter(|it| it.deleting && it.held_by(CLEANUP));
    let Some(body) = seen.and_then(|it| it.body.as_ref()) else { return Plan::none() };
    let mut objects = world.all(&key.name).peekable();
    if objects.peek().is_none() {
        let wanted = Wanted {
            kind: "Terminating",
            status: "False",
            reason: "InstanceDeletionCompleted",
            message: "removed all instances",
        };
        // Two writes: watchers see that it is done before it is gone.
        let done = Write::change(key, body, vec![condition(body, wanted, moment)]);
        return vec![done, Write::change(key, body, vec![Edit::DropFinalizer(CLEANUP)])].into();
    }
    let wanted = Wanted {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionInProgress",
        message: "CustomResource deletion is in progress",
    };
    let mut writes = vec![Write::change(key, body, vec![condition(body, wanted, moment)])];
    let living = objects.filter(|(_, it)| !it.deleting);
    writes.extend(living.map(|(at, it)| Write::delete(at, &it.uid)));
    writes.into()
}

fn condition(body: &Value, wanted: Wanted<'_>, moment: &Moment) -> Edit {
    let mut conditions = conditions::all(body);
    conditions::put(&mut conditions, wanted, &moment.stamp);
    set(["status", "conditions"], conditions)
}
