//! States of Pods, and Pods made from templates.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    controllers::{cache::ObjectKey, conditions, time::DecisionTime, workloads::claim},
    object::{self, text},
};

pub(crate) const PODS: &str = "pods";

pub(crate) fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

/// Returns whether a Pod is neither terminated nor deleted.
pub(crate) fn active(pod: &Value) -> bool {
    !ended(pod) && !object::deleting(pod)
}

pub(crate) fn ended(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn ready(pod: &Value) -> bool {
    conditions::holds(pod, "Ready")
}

/// Returns whether a Pod has been ready for `seconds`. If it is ready for a shorter time, also returns the time left.
pub(crate) fn available(
    pod: &Value,
    seconds: i64,
    moment: &DecisionTime,
) -> (bool, Option<Duration>) {
    let Some(condition) = conditions::find(pod, "Ready").filter(|_| ready(pod)) else {
        return (false, None);
    };
    let since = condition.get("lastTransitionTime").and_then(Value::as_str).unwrap_or_default();
    match moment.until(since, seconds) {
        Some(wait) if seconds > 0 => (false, Some(wait)),
        Some(_) | None => (true, None),
    }
}

/// Returns the order in which surplus Pods are deleted: the least useful first.
pub(crate) fn rank(pod: &Value) -> impl Ord + use<> {
    let phase = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let restarts = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let restarts = restarts.into_iter().flatten();
    let restarts = restarts.filter_map(|it| it.get("restartCount")?.as_i64()).max().unwrap_or(0);
    let cost = pod.pointer("/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost");
    let cost: i32 = cost.and_then(Value::as_str).and_then(|it| it.parse().ok()).unwrap_or(0);
    let since = conditions::find(pod, "Ready").filter(|_| ready(pod));
    let since = since.and_then(|it| it.get("lastTransitionTime")?.as_str()).unwrap_or_default();
    let newest = |stamp: &str| std::cmp::Reverse(stamp.to_owned());
    (
        !text(pod, "/spec/nodeName").is_empty(),
        phase,
        ready(pod),
        cost,
        newest(since),
        -restarts,
        newest(object::meta(pod, "creationTimestamp")),
        object::meta(pod, "name").to_owned(),
    )
}

/// Makes a Pod from the template of its owner, without a name.
pub(crate) fn of_template(owner: &ObjectKey, body: &Value, kind: (&str, &str)) -> Value {
    let template = body.pointer("/spec/template").cloned().unwrap_or_default();
    let mut metadata = Map::new();
    metadata.insert("generateName".into(), format!("{}-", owner.name).into());
    metadata.insert("namespace".into(), owner.namespace.clone().into());
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata.insert(field.into(), value.clone());
        }
    }
    metadata.insert("ownerReferences".into(), json!([claim::reference(body, kind)]));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Sets a label of an object.
pub(crate) fn label(object: &mut Value, key: &str, value: &str) {
    nested(object, "labels", key, value);
}

/// Sets an annotation of an object.
pub(crate) fn annotate(object: &mut Value, key: &str, value: &str) {
    nested(object, "annotations", key, value);
}

fn nested(object: &mut Value, field: &str, key: &str, value: &str) {
    let Some(meta) = object::meta_mut(object) else { return };
    let place = meta.entry(field).or_insert_with(|| json!({}));
    if !place.is_object() {
        *place = json!({});
    }
    object::put(place, key, Some(value.into()));
}
