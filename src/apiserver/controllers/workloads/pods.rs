//! Small questions to Pods, and Pods made of templates.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    controllers::{conditions, time::Moment, workloads::claim, world::Key},
    object::{self, text},
};

pub(crate) const PODS: &str = "pods";

pub(crate) fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

/// Neither ended nor on its way out.
pub(crate) fn active(pod: &Value) -> bool {
    !ended(pod) && !object::deleting(pod)
}

pub(crate) fn ended(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn ready(pod: &Value) -> bool {
    conditions::holds(pod, "Ready")
}

/// Whether a Pod has been ready for so many seconds; if not, but ready, how long it takes until it is.
pub(crate) fn available(pod: &Value, seconds: i64, moment: &Moment) -> (bool, Option<Duration>) {
    let Some(condition) = conditions::find(pod, "Ready").filter(|_| ready(pod)) else {
        return (false, None);
    };
    let since = condition.get("lastTransitionTime").and_then(Value::as_str).unwrap_or_default();
    match moment.until(since, seconds) {
        Some(wait) if seconds > 0 => (false, Some(wait)),
        Some(_) | None => (true, None),
    }
}

/// The order in which surplus Pods go: first those that are missed least.
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

/// A Pod of the template of its owner, without a name.
pub(crate) fn of_template(owner: &Key, body: &Value, kind: (&str, &str)) -> Value {
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

/// Sets a label.
pub(crate) fn label(object: &mut Value, key: &str, value: &str) {
    nested(object, "labels", key, value);
}

/// Sets an annotation.
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
