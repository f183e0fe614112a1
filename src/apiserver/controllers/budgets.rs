//! The status of `PodDisruptionBudget`s: how many of the selected Pods may be evicted now.

use serde_json::{Value, json};

use crate::{
    admission::evictions,
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{
            pods::{self, PODS},
            rollout::portion,
        },
        write::{Write, set},
    },
    labels, object,
};

const BUDGETS: &str = "poddisruptionbudgets.policy";

pub(crate) const CONTROLLER: Controller =
    Controller { reads: &[BUDGETS, PODS], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    match update.key.resource.as_str() {
        BUDGETS => found.push(update.key.clone()),
        PODS => {
            let here = cache.within(BUDGETS, &update.key.namespace);
            found.extend(here.map(|(key, _)| key.clone()));
        }
        _ => {}
    }
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key).filter(|it| !object::deleting(it)) else {
        return ReconcileResult::none();
    };
    let selector = body.pointer("/spec/selector");
    let all = cache.within(PODS, &key.namespace).filter_map(|(_, it)| it.body.as_deref());
    let selected: Vec<&Value> =
        all.filter(|it| labels::selects(selector, labels::of(it)) && !pods::ended(it)).collect();
    let healthy = selected.iter().filter(|it| pods::ready(it) && !object::deleting(it)).count();
    let expected = i64::try_from(selected.len()).unwrap_or(i64::MAX);
    let desired = desired(body, expected);
    let disrupted = body.pointer("/status/disruptedPods").and_then(Value::as_object);
    // Pods that have been deleted are removed from the map.
    let waiting = disrupted.into_iter().flatten().filter(|(name, _)| {
        selected.iter().any(|it| object::meta(it, "name") == *name && !object::deleting(it))
    });
    let waiting: serde_json::Map<String, Value> =
        waiting.map(|(name, it)| (name.clone(), it.clone())).collect();
    let healthy = i64::try_from(healthy.saturating_sub(waiting.len())).unwrap_or(i64::MAX);
    let generation = object::number(body, "/metadata/generation").unwrap_or(0);
    let mut status = json!({
        "observedGeneration": generation,
        "disruptionsAllowed": healthy.saturating_sub(desired).max(0),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    });
    if !waiting.is_empty() {
        object::put(&mut status, "disruptedPods", Some(waiting.into()));
    }
    let conditions = body.pointer("/status/conditions").cloned();
    object::put(&mut status, "conditions", Some(conditions.unwrap_or_else(|| json!([]))));
    let mut new = json!({ "status": status });
    evictions::set_condition(&mut new, generation, &moment.stamp);
    if body.get("status") == new.get("status") {
        return ReconcileResult::none();
    }
    let status = new.get_mut("status").map(Value::take).unwrap_or_default();
    vec![Write::change(key, body, vec![set(["status"], status)])].into()
}

/// Returns the number of Pods that must be healthy. The existing Pods are counted, because the desired number of their owner is not known
/// here.
fn desired(budget: &Value, pods: i64) -> i64 {
    let part = |field: &str| budget.pointer(&format!("/spec/{field}")).filter(|it| !it.is_null());
    match (part("minAvailable"), part("maxUnavailable")) {
        (Some(least), _) => portion(least, pods, true),
        (None, Some(most)) => pods.saturating_sub(portion(most, pods, true)).max(0),
        (None, None) => 0,
    }
}
