//! Evictions: a Pod is deleted if the disruption budget that selects it allows it.

use serde_json::{Value, json};

use crate::{
    labels, object,
    refusal::Refusal,
    store::{Store, StoreKey},
};

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// Limit of `disruptedPods`: a budget with more Pods that are about to be deleted is stuck. The same as on the real server.
const DISRUPTED_MAX: usize = 2000;

/// Checks whether a Pod may be evicted, and records it in its budget, unless `dry`.
pub(crate) fn permit(store: &mut Store, pod: &Value, dry: bool) -> Result<(), Refusal> {
    let phase = object::text(pod, "/status/phase");
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || object::deleting(pod) {
        return Ok(());
    }
    let namespace = object::meta(pod, "namespace");
    let mut budgets = super::objects(store, BUDGETS, namespace);
    budgets.retain(|it| labels::selects(it.pointer("/spec/selector"), labels::of(pod)));
    let mut budget = match budgets.len() {
        0 => return Ok(()),
        1 => budgets.swap_remove(0),
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Refusal::unclassed(why));
        }
    };
    if !is_ready(pod) && allows_unhealthy(&budget) {
        return Ok(());
    }
    let name = object::meta(&budget, "name").to_owned();
    take(&mut budget, object::meta(pod, "name"), &store.now())?;
    if !dry {
        store.put(&StoreKey::new(BUDGETS, namespace, &name), budget);
    }
    Ok(())
}

/// Returns whether a Pod has the condition `Ready`.
fn is_ready(pod: &Value) -> bool {
    let conditions = object::list(pod, "/status/conditions").iter();
    conditions
        .clone()
        .any(|it| object::text(it, "/type") == "Ready" && object::text(it, "/status") == "True")
}

/// Returns whether a budget allows the eviction of Pods that are not ready: enough others are healthy, or its policy allows it.
fn allows_unhealthy(budget: &Value) -> bool {
    let number = |field: &str| object::number(budget, &format!("/status/{field}")).unwrap_or(0);
    let healthy =
        number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    healthy || object::text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow"
}

/// Takes one disruption from a budget, and adds the Pod to `disruptedPods`.
fn take(budget: &mut Value, pod: &str, now: &str) -> Result<(), Refusal> {
    let name = object::meta(budget, "name").to_owned();
    let number = |field: &str| object::number(budget, field).unwrap_or(0);
    if number("/status/observedGeneration") < number("/metadata/generation") {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Refusal::disruption(&why, Some(10)));
    }
    let allowed = number("/status/disruptionsAllowed");
    if allowed <= 0 {
        let why = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("/status/desiredHealthy"),
            number("/status/currentHealthy")
        );
        return Err(Refusal::disruption(&why, None));
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|it| it.len() > DISRUPTED_MAX) {
        return Err(Refusal::disruption(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            None,
        ));
    }
    let generation = number("/metadata/generation");
    let status =
        json!({ "status": { "disruptionsAllowed": allowed - 1, "disruptedPods": { (pod): now } } });
    json_patch::merge(budget, &status);
    set_condition(budget, generation, now);
    Ok(())
}

/// Sets the condition `DisruptionAllowed` of a budget.
pub(crate) fn set_condition(budget: &mut Value, generation: i64, now: &str) {
    let allowed = object::number(budget, "/status/disruptionsAllowed").is_some_and(|it| it > 0);
    let (status, reason) =
        if allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut conditions = object::list(budget, "/status/conditions").to_vec();
    let present = conditions.iter().position(|it| object::text(it, "/type") == "DisruptionAllowed");
    let since = present.and_then(|at| conditions.get(at));
    let since = since.filter(|it| object::text(it, "/status") == status);
    let since = since.map_or(now, |it| object::text(it, "/lastTransitionTime")).to_owned();
    let condition = json!({
        "type": "DisruptionAllowed", "status": status, "observedGeneration": generation,
        "lastTransitionTime": since, "reason": reason, "message": "",
    });
    match present.and_then(|at| conditions.get_mut(at)) {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
    object::put_in(budget, "status", "conditions", conditions.into());
}
