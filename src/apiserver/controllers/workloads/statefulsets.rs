//! `StatefulSet`: numbered Pods, created one after the other, each with separate volume claims.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::sorted::CollectSorted as _;
use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{
            claim,
            pods::{self, PODS},
            revisions::{self, REVISIONS},
        },
        write::{Write, set},
    },
    labels,
    object::{self, number, text},
};

const STATEFUL_SETS: &str = "statefulsets.apps";
const CLAIMS: &str = "persistentvolumeclaims";
const KIND: (&str, &str) = ("apps/v1", "StatefulSet");
const HASH: &str = "controller.kubernetes.io/hash";
const POD_REVISION: &str = "controller-revision-hash";
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Limit of Pods that one plan creates for a set with parallel creation; the next one continues.
const BURST_MAX: usize = 500;

pub(crate) const CONTROLLER: Controller = Controller {
    reads: &[STATEFUL_SETS, PODS, REVISIONS],
    affected,
    reconcile,
    step: NO_STEP,
    start: &[],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    claim::affected_owners(cache, update, (STATEFUL_SETS, PODS), found);
    claim::affected_owners(cache, update, (STATEFUL_SETS, REVISIONS), found);
}

/// A set with its Pods.
struct StatefulSetView<'a> {
    cache: &'a Cache,
    key: &'a ObjectKey,
    body: &'a Value,
    replicas: i64,
    /// The Pods by their ordinals.
    pods: BTreeMap<i64, (&'a ObjectKey, &'a Arc<Value>)>,
    /// The name of the revision of the existing Pods, then that of the current template.
    current: String,
    update: String,
    /// Each Pod waits for the one before it.
    ordered: bool,
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key) else { return ReconcileResult::none() };
    let claimed = claim::claim(cache, key, body, PODS, KIND);
    let mut plan = ReconcileResult::from(claimed.writes);
    let newest = revisions::newest(cache, key, body, KIND, HASH);
    let current = Some(text(body, "/status/currentRevision")).filter(|it| !it.is_empty());
    let view = StatefulSetView {
        cache,
        key,
        body,
        replicas: number(body, "/spec/replicas").unwrap_or(1),
        pods: numbered(key, &claimed.children),
        current: current.unwrap_or(&newest.name).into(),
        update: newest.name,
        ordered: text(body, "/spec/podManagementPolicy") != "Parallel",
    };
    if !object::deleting(body) && plan.writes.is_empty() {
        plan.writes.extend(newest.writes);
        manage(&view, &mut plan);
        let used = |key: &ObjectKey, _: &Value| {
            key.name == view.current
                || key.name == view.update
                || view.pods.values().any(|(_, it)| revision_of(it) == key.name)
        };
        plan.writes.extend(revisions::clean_up(cache, body, used));
    }
    let status = status(&view, moment, &mut plan);
    plan.writes.push(Write::change(key, body, vec![set(["status"], status)]));
    plan
}

/// Returns the Pods by ordinal, which is the suffix of their names.
fn numbered<'a>(
    key: &ObjectKey,
    children: &[(&'a ObjectKey, &'a Arc<Value>)],
) -> BTreeMap<i64, (&'a ObjectKey, &'a Arc<Value>)> {
    let number = |name: &str| {
        let digits = name.strip_prefix(key.name.as_str())?.strip_prefix('-')?;
        digits.parse::<i64>().ok().filter(|it| *it >= 0 && it.to_string() == digits)
    };
    children.iter().filter_map(|it| Some((number(&it.0.name)?, *it))).collect_map()
}

fn revision_of(pod: &Value) -> &str {
    labels::of(pod).get(POD_REVISION).and_then(Value::as_str).unwrap_or_default()
}

fn healthy(pod: &Value) -> bool {
    pods::phase(pod) == "Running" && pods::ready(pod) && !object::deleting(pod)
}

fn manage(view: &StatefulSetView<'_>, plan: &mut ReconcileResult) {
    let start = number(view.body, "/spec/ordinals/start").unwrap_or(0);
    let end = start.saturating_add(view.replicas);
    let mut settled = true;
    let mut made = 0;
    for ordinal in start..end {
        let Some((key, pod)) = view.pods.get(&ordinal) else {
            make(view, ordinal, plan);
            made += 1;
            if view.ordered || made == BURST_MAX {
                return;
            }
            continue;
        };
        if pods::ended(pod) && !object::deleting(pod) {
            plan.writes.push(Write::delete(key, object::meta(pod, "uid")));
        }
        if !healthy(pod) {
            if view.ordered {
                return;
            }
            settled = false;
        }
    }
    let mut surplus =
        view.pods.iter().rev().filter(|(it, _)| !(start..end).contains(*it)).peekable();
    let shrinks = surplus.peek().is_some();
    for (_, (key, pod)) in surplus {
        if !object::deleting(pod) {
            plan.writes.push(Write::delete(key, object::meta(pod, "uid")));
        }
        if view.ordered {
            return;
        }
    }
    if !shrinks && made == 0 && (settled || view.ordered) {
        update(view, start, end, plan);
    }
}

/// Replaces Pods of old revisions, one at a time, starting with the last one.
fn update(view: &StatefulSetView<'_>, start: i64, end: i64, plan: &mut ReconcileResult) {
    if text(view.body, "/spec/updateStrategy/type") == "OnDelete" {
        return;
    }
    let partition = number(view.body, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    for (_, (key, pod)) in
        view.pods.range(partition.max(start)..end.max(partition.max(start))).rev()
    {
        if revision_of(pod) != view.update && !object::deleting(pod) {
            plan.writes.push(Write::delete(key, object::meta(pod, "uid")));
            return;
        }
        if !healthy(pod) {
            return;
        }
    }
}

/// Returns the revision of a Pod that is created now.
fn wanted_revision<'a>(view: &'a StatefulSetView<'_>, ordinal: i64) -> &'a str {
    let partition = number(view.body, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    // Counted as in the status, which may be older than the latest deletion.
    let mut kept = 0;
    for (_, pod) in view.pods.values() {
        kept += i64::from(!object::deleting(pod) && revision_of(pod) == view.current);
    }
    let start = number(view.body, "/spec/ordinals/start").unwrap_or(0);
    if ordinal < partition || (partition == 0 && ordinal < start.saturating_add(kept)) {
        &view.current
    } else {
        &view.update
    }
}

fn make(view: &StatefulSetView<'_>, ordinal: i64, plan: &mut ReconcileResult) {
    let revision = wanted_revision(view, ordinal);
    let mut owner = view.body.clone();
    if revision != view.update
        && let Some(kept) =
            view.cache.body(&ObjectKey::new(REVISIONS, &view.key.namespace, revision))
        && let Some(spec) = owner.get_mut("spec")
    {
        object::put(spec, "template", Some(revisions::template(kept)));
    }
    let name = format!("{}-{ordinal}", view.key.name);
    let mut pod = pods::of_template(view.key, &owner, KIND);
    object::set_meta(&mut pod, "name", name.clone());
    pods::label(&mut pod, POD_REVISION, revision);
    pods::label(&mut pod, POD_NAME, &name);
    pods::label(&mut pod, POD_INDEX, &ordinal.to_string());
    let templates = view.body.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    for template in templates.into_iter().flatten() {
        claim_volume(view, template, &name, &mut pod, plan);
    }
    if let Some(spec) = pod.get_mut("spec") {
        object::put(spec, "hostname", Some(name.into()));
        let subdomain = text(view.body, "/spec/serviceName");
        object::put(
            spec,
            "subdomain",
            Some(subdomain).filter(|it| !it.is_empty()).map(Value::from),
        );
    }
    plan.writes.push(Write::Create { resource: PODS, body: pod });
}

/// Creates the claim of a Pod. The claim is kept after the deletion of the Pod.
fn claim_volume(
    view: &StatefulSetView<'_>,
    template: &Value,
    pod_name: &str,
    pod: &mut Value,
    plan: &mut ReconcileResult,
) {
    let volume = object::meta(template, "name");
    let name = format!("{volume}-{pod_name}");
    let known = view.cache.get(&ObjectKey::new(CLAIMS, &view.key.namespace, &name)).is_some();
    if !known && view.cache.def(CLAIMS).is_some() {
        let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        let own = view.body.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        for (key, value) in own.into_iter().flatten() {
            object::put(&mut labels, key, Some(value.clone()));
        }
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": view.key.namespace, "labels": labels },
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        });
        if let Some(annotations) = template.pointer("/metadata/annotations") {
            object::set_meta(&mut body, "annotations", annotations.clone());
        }
        plan.writes.push(Write::Create { resource: CLAIMS, body });
    }
    let source = json!({ "name": volume, "persistentVolumeClaim": { "claimName": name } });
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.retain(|it| it.get("name").and_then(Value::as_str) != Some(volume));
        volumes.push(source);
    }
}

fn status(view: &StatefulSetView<'_>, moment: &DecisionTime, plan: &mut ReconcileResult) -> Value {
    let seconds = number(view.body, "/spec/minReadySeconds").unwrap_or(0);
    let all = || view.pods.values().map(|(_, it)| it);
    let mut available = 0_i64;
    for pod in all().filter(|it| healthy(it)) {
        let (is_available, wait) = pods::available(pod, seconds, moment);
        available += i64::from(is_available);
        if let Some(wait) = wait {
            plan.requeue_after(wait);
        }
    }
    let of = |revision: &str| {
        let living = all().filter(|it| !object::deleting(it) && revision_of(it) == revision);
        i64::try_from(living.count()).unwrap_or(i64::MAX)
    };
    let count = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
    let ready = count(all().filter(|it| healthy(it)).count());
    let updated = of(&view.update);
    let finished = updated == view.replicas && ready == view.replicas;
    let current = if finished { &view.update } else { &view.current };
    let mut status = json!({
        "observedGeneration": number(view.body, "/metadata/generation"),
        "replicas": view.pods.len(),
    });
    let counts =
        [("readyReplicas", ready), ("currentReplicas", of(current)), ("updatedReplicas", updated)];
    for (name, value) in counts.into_iter().filter(|(_, value)| *value > 0) {
        object::put(&mut status, name, Some(value.into()));
    }
    object::put(&mut status, "currentRevision", Some(current.clone().into()));
    object::put(&mut status, "updateRevision", Some(view.update.clone().into()));
    let collisions = number(view.body, "/status/collisionCount").unwrap_or(0);
    object::put(&mut status, "collisionCount", Some(collisions.into()));
    object::put(&mut status, "availableReplicas", Some(available.into()));
    status
}
