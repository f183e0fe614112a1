//! `ReplicaSet`: keeps a number of Pods of one template.

use serde_json::{Value, json};

use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{claim, pods, pods::PODS},
        write::{Write, set},
    },
    labels,
    object::{self, number},
};

pub(crate) const REPLICA_SETS: &str = "replicasets.apps";
const KIND: (&str, &str) = ("apps/v1", "ReplicaSet");
/// Limit of Pods that one plan creates; the next one continues. The real controller has the same limit.
const BURST_MAX: usize = 500;

pub(crate) const CONTROLLER: Controller =
    Controller { reads: &[REPLICA_SETS, PODS], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    claim::affected_owners(cache, update, (REPLICA_SETS, PODS), found);
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key) else { return ReconcileResult::none() };
    let claimed = claim::claim(cache, key, body, PODS, KIND);
    let mut plan = ReconcileResult::from(claimed.writes);
    let mut active: Vec<(&ObjectKey, &Value)> =
        claimed.children.iter().map(|(key, it)| (*key, &***it)).collect();
    active.retain(|(_, it)| pods::active(it));
    // Loose Pods are counted after their adoption; until then no Pods are created in their place.
    if !object::deleting(body) && plan.writes.is_empty() {
        replicate(key, body, &active, &mut plan);
    }
    let status = status(body, &active, moment, &mut plan);
    plan.writes.push(Write::change(key, body, vec![set(["status"], status)]));
    plan
}

fn replicate(
    key: &ObjectKey,
    body: &Value,
    active: &[(&ObjectKey, &Value)],
    plan: &mut ReconcileResult,
) {
    let wanted = number(body, "/spec/replicas").unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let missing = wanted.saturating_sub(active.len()).min(BURST_MAX);
    let pod = pods::of_template(key, body, KIND);
    plan.writes.extend(
        std::iter::repeat_n(pod, missing).map(|body| Write::Create { resource: PODS, body }),
    );
    let surplus = active.len().saturating_sub(wanted).min(BURST_MAX);
    if surplus > 0 {
        let mut ranked: Vec<_> = active.to_vec();
        ranked.sort_by_cached_key(|(_, it)| pods::rank(it));
        let go = ranked.iter().take(surplus);
        plan.writes.extend(go.map(|(at, it)| Write::delete(at, object::meta(it, "uid"))));
    }
}

fn status(
    body: &Value,
    active: &[(&ObjectKey, &Value)],
    moment: &DecisionTime,
    plan: &mut ReconcileResult,
) -> Value {
    let template = body.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let labelled = |pod: &Value| {
        let labels = labels::of(pod);
        template.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
    };
    let seconds = number(body, "/spec/minReadySeconds").unwrap_or(0);
    let mut available = 0;
    for (_, pod) in active {
        let (is_available, wait) = pods::available(pod, seconds, moment);
        available += usize::from(is_available);
        if let Some(wait) = wait {
            plan.requeue_after(wait);
        }
    }
    let counts = [
        ("fullyLabeledReplicas", active.iter().filter(|(_, it)| labelled(it)).count()),
        ("readyReplicas", active.iter().filter(|(_, it)| pods::ready(it)).count()),
        ("availableReplicas", available),
    ];
    let mut status = json!({ "replicas": active.len() });
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        object::put(&mut status, name, Some(count.into()));
    }
    let generation = number(body, "/metadata/generation");
    object::put(&mut status, "observedGeneration", generation.map(Value::from));
    if let Some(conditions) = body.pointer("/status/conditions") {
        object::put(&mut status, "conditions", Some(conditions.clone()));
    }
    status
}
