//! Deletion of CRDs: their objects are deleted first.
//!
//! The server adds a finalizer to a deleted CRD; this controller removes it when no objects are left.

use serde_json::Value;

use super::{
    Controller, NO_STEP, ReconcileResult,
    cache::{Cache, ObjectKey, Update},
    conditions::{self, DesiredCondition},
    time::DecisionTime,
    write::{FieldEdit, Write, set},
};
use crate::resource::CRDS;

/// The finalizer of a CRD that still has objects.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[CRDS], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if update.key.resource == CRDS {
        found.push(update.key.clone());
        return;
    }
    // A CRD is named after its resource.
    let definition = ObjectKey::new(CRDS, "", &update.key.resource);
    if cache.get(&definition).is_some_and(|it| it.deleting) {
        found.push(definition);
    }
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let seen = cache.get(key).filter(|it| it.deleting && it.held_by(CLEANUP));
    let Some(body) = seen.and_then(|it| it.body.as_ref()) else { return ReconcileResult::none() };
    let mut objects = cache.all(&key.name).peekable();
    if objects.peek().is_none() {
        let wanted = DesiredCondition {
            kind: "Terminating",
            status: "False",
            reason: "InstanceDeletionCompleted",
            message: "removed all instances",
        };
        // Two writes, so that watchers see the condition before the deletion.
        let done = Write::change(key, body, vec![condition(body, wanted, moment)]);
        return vec![done, Write::change(key, body, vec![FieldEdit::DropFinalizer(CLEANUP)])]
            .into();
    }
    let wanted = DesiredCondition {
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

fn condition(body: &Value, wanted: DesiredCondition<'_>, moment: &DecisionTime) -> FieldEdit {
    let mut conditions = conditions::all(body);
    conditions::put(&mut conditions, wanted, &moment.stamp);
    set(["status", "conditions"], conditions)
}
