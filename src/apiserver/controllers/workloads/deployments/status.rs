//! The status of a Deployment: its counts and the conditions `Available` and `Progressing`.

use serde_json::{Value, json};

use super::DeploymentView;
use crate::{
    controllers::{
        ReconcileResult, conditions,
        time::DecisionTime,
        workloads::rollout::Set,
        write::{Write, set},
    },
    object::{self, number},
};

/// A deadline of this many seconds (the maximum of a 32-bit integer) means none.
const NO_DEADLINE: i64 = 2_147_483_647;
const COUNTS: [&str; 5] =
    ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];

/// Sums of the statuses of all sets in the cache.
struct ReplicaCounts {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
    unavailable: i64,
}

fn count(view: &DeploymentView<'_>) -> ReplicaCounts {
    let sum = |field: &str| view.all().map(|it| it.status(field)).sum::<i64>();
    let wanted: i64 = view.all().map(|it| it.replicas).sum();
    let available = sum("availableReplicas");
    ReplicaCounts {
        replicas: sum("replicas"),
        updated: view.new.as_ref().map_or(0, |it| it.status("replicas")),
        ready: sum("readyReplicas"),
        available,
        unavailable: (wanted - available).max(0),
    }
}

fn status(view: &DeploymentView<'_>, conditions: Vec<Value>) -> Value {
    let counts = count(view);
    let values =
        [counts.replicas, counts.updated, counts.ready, counts.available, counts.unavailable];
    let generation = number(view.body, "/metadata/generation");
    let mut status = json!({});
    object::put(&mut status, "observedGeneration", generation.map(Value::from));
    for (name, value) in COUNTS.into_iter().zip(values).filter(|(_, value)| *value > 0) {
        object::put(&mut status, name, Some(value.into()));
    }
    let collisions = view.body.pointer("/status/collisionCount").cloned();
    object::put(&mut status, "collisionCount", collisions);
    if !conditions.is_empty() {
        object::put(&mut status, "conditions", Some(conditions.into()));
    }
    status
}

fn write(view: &DeploymentView<'_>, conditions: Vec<Value>, plan: &mut ReconcileResult) {
    let status = status(view, conditions);
    plan.writes.push(Write::change(view.key, view.body, vec![set(["status"], status)]));
}

/// Appends a condition. An existing one with the same status and reason is kept, unless it is `renewed`.
fn put(
    conditions: &mut Vec<Value>,
    wanted: conditions::DesiredCondition<'_>,
    stamp: &str,
    renewed: bool,
) {
    let field = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).map(String::from);
    let place = conditions.iter().position(|it| field(it, "type").as_deref() == Some(wanted.kind));
    let old = place.and_then(|it| conditions.get(it)).cloned().unwrap_or_default();
    let same_status = field(&old, "status").as_deref() == Some(wanted.status);
    if same_status && field(&old, "reason").as_deref() == Some(wanted.reason) && !renewed {
        return;
    }
    if let Some(place) = place {
        conditions.remove(place);
    }
    let since = field(&old, "lastTransitionTime").filter(|_| same_status);
    conditions.push(json!({
        "type": wanted.kind,
        "status": wanted.status,
        "lastUpdateTime": stamp,
        "lastTransitionTime": since.as_deref().unwrap_or(stamp),
        "reason": wanted.reason,
        "message": wanted.message,
    }));
}

fn put_available(view: &DeploymentView<'_>, conditions: &mut Vec<Value>, stamp: &str) {
    let enough = count(view).available >= view.limits.replicas - view.limits.unavailable;
    let (status, reason, message) = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let wanted = conditions::DesiredCondition { kind: "Available", status, reason, message };
    put(conditions, wanted, stamp, false);
}

fn progressing<'a>(
    status: &'a str,
    reason: &'a str,
    message: &'a str,
) -> conditions::DesiredCondition<'a> {
    conditions::DesiredCondition { kind: "Progressing", status, reason, message }
}

fn deadline(view: &DeploymentView<'_>) -> Option<i64> {
    number(view.body, "/spec/progressDeadlineSeconds").filter(|it| *it != NO_DEADLINE)
}

fn reason<'a>(view: &DeploymentView<'a>) -> &'a str {
    let condition = conditions::find(view.body, "Progressing");
    condition.and_then(|it| it.get("reason")?.as_str()).unwrap_or_default()
}

/// Sets the condition when the rollout is paused or resumed.
fn put_paused(view: &DeploymentView<'_>, conditions: &mut Vec<Value>, stamp: &str) {
    if deadline(view).is_none() || reason(view) == "ProgressDeadlineExceeded" {
        return;
    }
    let wanted = match (view.paused(), reason(view)) {
        (true, _) => progressing("Unknown", "DeploymentPaused", "Deployment is paused"),
        (false, "DeploymentPaused") => {
            progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
        }
        (false, _) => return,
    };
    put(conditions, wanted, stamp, false);
}

/// Plans the status while nothing is rolled out.
pub(super) fn simple(view: &DeploymentView<'_>, plan: &mut ReconcileResult, moment: &DecisionTime) {
    let mut conditions = conditions::all(view.body);
    put_paused(view, &mut conditions, &moment.stamp);
    put_available(view, &mut conditions, &moment.stamp);
    write(view, conditions, plan);
}

/// Plans the status after a new set was created. Its counts follow when it is in the cache.
pub(super) fn created(
    view: &DeploymentView<'_>,
    name: &str,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) {
    if deadline(view).is_none() {
        return;
    }
    let mut conditions = conditions::all(view.body);
    let message = format!("Created new replica set {name:?}");
    let wanted = progressing("True", "NewReplicaSetCreated", &message);
    put(&mut conditions, wanted, &moment.stamp, false);
    let edit = set(["status", "conditions"], conditions);
    plan.writes.push(Write::change(view.key, view.body, vec![edit]));
}

/// Returns whether all desired Pods are updated and available, and no others exist.
pub(super) fn is_complete(view: &DeploymentView<'_>) -> bool {
    let counts = count(view);
    let wanted = view.limits.replicas;
    [counts.updated, counts.replicas, counts.available].iter().all(|it| *it == wanted)
}

fn has_progressed(view: &DeploymentView<'_>) -> bool {
    let counts = count(view);
    let before = |field: &str| number(view.body, &format!("/status/{field}")).unwrap_or(0);
    let old = before("replicas") - before("updatedReplicas");
    counts.updated > before("updatedReplicas")
        || counts.replicas - counts.updated < old
        || counts.ready > before("readyReplicas")
        || counts.available > before("availableReplicas")
}

/// Plans the status during and after a rollout.
pub(super) fn rolling(
    view: &DeploymentView<'_>,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) {
    let mut conditions = conditions::all(view.body);
    put_paused(view, &mut conditions, &moment.stamp);
    put_available(view, &mut conditions, &moment.stamp);
    let counts = count(view);
    let settled = counts.replicas == counts.updated && reason(view) == "NewReplicaSetAvailable";
    if let Some(deadline) = deadline(view).filter(|_| !settled) {
        put_progress(view, &mut conditions, deadline, plan, moment);
    }
    write(view, conditions, plan);
}

fn put_progress(
    view: &DeploymentView<'_>,
    conditions: &mut Vec<Value>,
    deadline: i64,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) {
    let name = |it: &Set<'_>| format!("ReplicaSet {:?}", it.key.name);
    let who = view.new.as_ref().map_or_else(|| format!("Deployment {:?}", view.key.name), name);
    if is_complete(view) {
        let message = format!("{who} has successfully progressed.");
        let wanted = progressing("True", "NewReplicaSetAvailable", &message);
        put(conditions, wanted, &moment.stamp, false);
    } else if has_progressed(view) {
        let message = format!("{who} is progressing.");
        put(conditions, progressing("True", "ReplicaSetUpdated", &message), &moment.stamp, true);
        plan.requeue_after(std::time::Duration::from_secs(
            deadline.unsigned_abs().saturating_add(1),
        ));
    } else if let Some(condition) = conditions::find(view.body, "Progressing") {
        let since = condition.get("lastUpdateTime").and_then(Value::as_str).unwrap_or_default();
        match moment.until(since, deadline.saturating_add(1)) {
            Some(wait) => plan.requeue_after(wait),
            None if matches!(reason(view), "ProgressDeadlineExceeded" | "DeploymentPaused") => {}
            None => {
                let message = format!("{who} has timed out progressing.");
                let wanted = progressing("False", "ProgressDeadlineExceeded", &message);
                put(conditions, wanted, &moment.stamp, false);
            }
        }
    } else if let Some(new) = &view.new {
        let message = format!("Found new replica set {:?}", new.key.name);
        let wanted = progressing("True", "FoundNewReplicaSet", &message);
        put(conditions, wanted, &moment.stamp, false);
    }
}
