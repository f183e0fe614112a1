//! `ReplicaSet`: so many Pods of one template.

use serde_json::{Value, json};

use crate::{
    controllers::{
        Controller, NO_STEP, Plan,
        time::Moment,
        workloads::{claim, pods, pods::PODS},
        world::{Key, News, World},
        write::{Write, set},
    },
    labels,
    object::{self, number},
};

pub(crate) const REPLICA_SETS: &str = "replicasets.apps";
const KIND: (&str, &str) = ("apps/v1", "ReplicaSet");
/// Pods made by one decision; the next burst goes on. The real controller stops at the same number.
const BURST_MAX: usize = 500;

pub(crate) const CONTROLLER: Controller =
    Controller { reads: &[REPLICA_SETS, PODS], concerns, decide, step: NO_STEP, start: &[] };

fn concerns(world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    claim::concerned(world, news, (REPLICA_SETS, PODS), found);
}

fn decide(world: &World, key: &Key, moment: &Moment) -> Plan {
    let Some(body) = world.body(key) else { return Plan::none() };
    let claimed = claim::claim(world, key, body, PODS, KIND);
    let mut plan = Plan::from(claimed.writes);
    let mut active: Vec<(&Key, &Value)> =
        claimed.children.iter().map(|(key, it)| (*key, &***it)).collect();
    active.retain(|(_, it)| pods::active(it));
    // Strays are counted when they are adopted; until then nothing is made in their place.
    if !object::deleting(body) && plan.writes.is_empty() {
        replicate(key, body, &active, &mut plan);
    }
    let status = status(body, &active, moment, &mut plan);
    plan.writes.push(Write::change(key, body, vec![set(["status"], status)]));
    plan
}

fn replicate(key: &Key, body: &Value, active: &[(&Key, &Value)], plan: &mut Plan) {
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

fn status(body: &Value, active: &[(&Key, &Value)], moment: &Moment, plan: &mut Plan) -> Value {
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
            plan.again(wait);
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
