//! `DaemonSet`: one Pod on every matching node.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::sorted;
use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{
            claim,
            pods::{self, PODS},
            revisions::{self, Newest, REVISIONS},
            rollout,
        },
        write::{Write, set},
    },
    labels,
    object::{self, number, text},
};

const DAEMON_SETS: &str = "daemonsets.apps";
const NODES: &str = "nodes";
const KIND: (&str, &str) = ("apps/v1", "DaemonSet");
const HASH: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// The tolerations that Pods of daemon sets get: the key of a taint, and its effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(crate) const CONTROLLER: Controller = Controller {
    reads: &[DAEMON_SETS, PODS, NODES, REVISIONS],
    affected,
    reconcile,
    step: NO_STEP,
    start: &[],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    claim::affected_owners(cache, update, (DAEMON_SETS, PODS), found);
    claim::affected_owners(cache, update, (DAEMON_SETS, REVISIONS), found);
    if update.key.resource == NODES {
        found.extend(cache.all(DAEMON_SETS).map(|(key, _)| key.clone()));
    }
}

type Pods<'a> = Vec<(&'a ObjectKey, &'a Arc<Value>)>;

/// A daemon set with its Pods and their nodes.
struct DaemonSetView<'a> {
    key: &'a ObjectKey,
    body: &'a Value,
    newest: Newest,
    nodes: Vec<&'a str>,
    /// The Pods by their nodes.
    placed: BTreeMap<&'a str, Pods<'a>>,
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key) else { return ReconcileResult::none() };
    let claimed = claim::claim(cache, key, body, PODS, KIND);
    let mut plan = ReconcileResult::from(claimed.writes);
    let newest = revisions::newest(cache, key, body, KIND, HASH);
    let mut placed: BTreeMap<&str, Pods<'_>> = BTreeMap::new();
    for pod in claimed.children {
        placed.entry(node_of(pod.1)).or_default().push(pod);
    }
    let nodes =
        cache.all(NODES).filter(|(_, it)| it.body.as_ref().is_some_and(|it| fits(body, it)));
    let nodes: Vec<&str> = nodes.map(|(key, _)| key.name.as_str()).collect();
    let view = DaemonSetView { key, body, newest, nodes, placed };
    if !object::deleting(body) && plan.writes.is_empty() {
        plan.writes.extend(view.newest.writes.iter().cloned());
        place(&view, &mut plan);
        replace(&view, moment, &mut plan);
        let used = |_: &ObjectKey, it: &Value| {
            let hash = labels::of(it).get(HASH);
            let mut pods = view.placed.values().flatten();
            hash.is_some_and(|hash| *hash == view.newest.hash)
                || pods.any(|(_, pod)| labels::of(pod).get(HASH) == hash)
        };
        plan.writes.extend(revisions::clean_up(cache, body, used));
    }
    let status = status(&view, moment, &mut plan);
    plan.writes.push(Write::change(key, body, vec![set(["status"], status)]));
    plan
}

/// Returns the node that a Pod is on, or is pinned to by its affinity.
fn node_of(pod: &Value) -> &str {
    let bound = text(pod, "/spec/nodeName");
    if !bound.is_empty() {
        return bound;
    }
    text(
        pod,
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
         /nodeSelectorTerms/0/matchFields/0/values/0",
    )
}

/// Returns whether Pods of the set may run on a node.
fn fits(body: &Value, node: &Value) -> bool {
    let named = text(body, "/spec/template/spec/nodeName");
    if !named.is_empty() && named != object::meta(node, "name") {
        return false;
    }
    let wanted = body.pointer("/spec/template/spec/nodeSelector").and_then(Value::as_object);
    let labels = labels::of(node);
    let mut wanted = wanted.into_iter().flatten();
    let tolerations = body.pointer("/spec/template/spec/tolerations").and_then(Value::as_array);
    let tolerated = |taint: &Value| {
        let [key, effect] =
            ["key", "effect"].map(|it| taint.get(it).and_then(Value::as_str).unwrap_or_default());
        effect == "PreferNoSchedule"
            || TOLERATED.contains(&(key, effect))
            || tolerations.into_iter().flatten().any(|it| tolerates(it, taint))
    };
    let mut taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value)) && taints.all(tolerated)
}

/// Returns whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |of: &Value, field: &str| {
        of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let effect = text(toleration, "effect");
    let key = text(toleration, "key");
    let any_key = key.is_empty() && text(toleration, "operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "effect"))
        && (any_key || key == text(taint, "key"))
        && (text(toleration, "operator") == "Exists"
            || text(toleration, "value") == text(taint, "value"))
}

/// Plans one Pod on each matching node, and none on others.
fn place(view: &DaemonSetView<'_>, plan: &mut ReconcileResult) {
    let DaemonSetView { key, body, newest, nodes, placed } = view;
    let delete =
        |(key, it): &(&ObjectKey, &Arc<Value>)| Write::delete(key, object::meta(it, "uid"));
    for (node, pods) in placed {
        let mut living: Pods<'_> =
            pods.iter().filter(|(_, it)| !object::deleting(it)).copied().collect();
        // The oldest Pod is kept.
        sorted::sort_by_key(&mut living, |(key, it)| (object::meta(it, "creationTimestamp"), *key));
        let keeps = usize::from(nodes.contains(node));
        let (ended, living): (Pods<'_>, Pods<'_>) =
            living.into_iter().partition(|(_, it)| pods::ended(it));
        plan.writes.extend(ended.iter().map(delete));
        plan.writes.extend(living.iter().skip(keeps).map(delete));
    }
    let missing = nodes.iter().filter(|it| placed.get(**it).is_none_or(Vec::is_empty));
    let pods =
        missing.map(|node| Write::Create { resource: PODS, body: pod(key, body, newest, node) });
    plan.writes.extend(pods);
}

fn generation(body: &Value) -> String {
    let annotated = rollout::annotation(body, GENERATION);
    if annotated.is_empty() {
        number(body, "/metadata/generation").unwrap_or(1).to_string()
    } else {
        annotated.into()
    }
}

fn pod(key: &ObjectKey, body: &Value, newest: &Newest, node: &str) -> Value {
    let mut pod = pods::of_template(key, body, KIND);
    pods::label(&mut pod, HASH, &newest.hash);
    pods::label(&mut pod, GENERATION_LABEL, &generation(body));
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return pod };
    let terms = json!({ "nodeSelectorTerms": [
        { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] },
    ] });
    let affinity = spec.entry("affinity").or_insert_with(|| json!({}));
    let mut on_nodes = affinity.get("nodeAffinity").cloned().unwrap_or_else(|| json!({}));
    object::put(&mut on_nodes, "requiredDuringSchedulingIgnoredDuringExecution", Some(terms));
    object::put(affinity, "nodeAffinity", Some(on_nodes));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for (key, effect) in TOLERATED {
            let toleration = json!({ "key": key, "operator": "Exists", "effect": effect });
            if !tolerations.contains(&toleration) {
                tolerations.push(toleration);
            }
        }
    }
    pod
}

fn is_new(pod: &Value, newest: &Newest) -> bool {
    labels::of(pod).get(HASH).is_some_and(|it| *it == newest.hash)
}

/// Deletes Pods of old revisions, as many at once as may be unavailable.
fn replace(view: &DaemonSetView<'_>, moment: &DecisionTime, plan: &mut ReconcileResult) {
    let DaemonSetView { body, newest, nodes, placed, .. } = view;
    if text(body, "/spec/updateStrategy/type") == "OnDelete" {
        return;
    }
    let unavailable = body.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let total = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    let limit = unavailable.map_or(1, |it| rollout::portion(it, total, true)).max(1);
    let seconds = number(body, "/spec/minReadySeconds").unwrap_or(0);
    let mut missing = 0;
    let (mut useless, mut useful) = (Vec::new(), Vec::new());
    for node in nodes {
        let pods = placed.get(node).into_iter().flatten();
        let mut living = pods.filter(|(_, it)| pods::active(it)).peekable();
        let is_available =
            living.peek().is_some_and(|(_, it)| pods::available(it, seconds, moment).0);
        missing += i64::from(!is_available);
        let old = living.filter(|(_, it)| !is_new(it, newest));
        if is_available { useful.extend(old) } else { useless.extend(old) }
    }
    let spare = usize::try_from(limit - missing).unwrap_or(0);
    let go = useless.into_iter().chain(useful.into_iter().take(spare));
    plan.writes.extend(go.map(|(key, it)| Write::delete(key, object::meta(it, "uid"))));
}

fn status(view: &DaemonSetView<'_>, moment: &DecisionTime, plan: &mut ReconcileResult) -> Value {
    let DaemonSetView { body, newest, nodes, placed, .. } = view;
    let seconds = number(body, "/spec/minReadySeconds").unwrap_or(0);
    let (mut scheduled, mut ready, mut available, mut updated) = (0, 0, 0, 0);
    for node in nodes {
        let pods = placed.get(node).into_iter().flatten();
        let Some((_, pod)) = pods.min_by_key(|(key, it)| {
            (!pods::active(it), object::meta(it, "creationTimestamp"), *key)
        }) else {
            continue;
        };
        scheduled += 1;
        ready += usize::from(pods::ready(pod));
        let (is_available, wait) = pods::available(pod, seconds, moment);
        available += usize::from(is_available);
        updated += usize::from(is_new(pod, newest));
        if let Some(wait) = wait {
            plan.requeue_after(wait);
        }
    }
    let misplaced = placed.keys().filter(|it| !nodes.contains(it)).count();
    let mut status = json!({
        "currentNumberScheduled": scheduled,
        "numberMisscheduled": misplaced,
        "desiredNumberScheduled": nodes.len(),
        "numberReady": ready,
        "observedGeneration": number(body, "/metadata/generation"),
    });
    let counts = [
        ("updatedNumberScheduled", updated),
        ("numberAvailable", available),
        ("numberUnavailable", nodes.len() - available),
    ];
    for (name, value) in counts.into_iter().filter(|(_, value)| *value > 0) {
        object::put(&mut status, name, Some(value.into()));
    }
    status
}
