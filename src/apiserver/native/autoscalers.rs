//! `HorizontalPodAutoscaler`s: stored as `autoscaling/v2`, also served as `autoscaling/v1`.
//!
//! The older version has one metric, the utilization of the CPU. Other metrics and the behavior are kept in its annotations.

use serde_json::{Map, Value, json};

use super::{Conversion, check::Problems, defaults};
use crate::object;

const DEFINITION: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The default target in percent, if no metric is given.
const CPU_PERCENT: i64 = 80;

pub(super) static V1: Conversion =
    Conversion { version: "v1", to_stored: to_v2, from_stored: to_v1 };

/// Fills in defaults, for either version.
pub(super) fn fill(it: &mut Value) {
    as_v2(it, |it| {
        defaults::fill(DEFINITION, it);
        let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) else { return };
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".into(), json!([cpu(CPU_PERCENT)]));
        }
    });
}

/// Sets the status of a new object.
pub(super) fn created(it: &mut Value) {
    as_v2(it, |it| super::lifecycle::fresh(DEFINITION, it));
}

/// Validates an object of either version.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Problems {
    let v2 = |it: &Value| {
        let mut it = it.clone();
        if is_v1(&it) {
            to_v2(&mut it);
        }
        it
    };
    super::check::autoscalers::autoscaler(&v2(new), old.map(v2).as_ref())
}

fn is_v1(it: &Value) -> bool {
    it.get("apiVersion").is_some_and(|it| it == "autoscaling/v1")
}

fn as_v2(it: &mut Value, change: impl FnOnce(&mut Value)) {
    let is_v1 = is_v1(it);
    if is_v1 {
        to_v2(it);
    }
    change(it);
    if is_v1 {
        to_v1(it);
    }
}

fn cpu(percent: i64) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": percent });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

/// Returns the average CPU utilization of a metric; `part` is `target` or `current`.
fn cpu_percent(metric: &Value, part: &str) -> Option<Value> {
    let resource = metric.get("resource").filter(|it| it.get("name") == Some(&json!("cpu")))?;
    resource.get(part)?.get("averageUtilization").cloned()
}

fn to_v2(it: &mut Value) {
    object::put(it, "apiVersion", Some(json!("autoscaling/v2")));
    let (others, behavior) = (take_annotation(it, METRICS), take_annotation(it, BEHAVIOR));
    if let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) {
        let percent = spec.shift_remove("targetCPUUtilizationPercentage");
        let own = percent.as_ref().and_then(Value::as_i64).map(cpu);
        let mut metrics: Vec<Value> =
            others.and_then(|it| it.as_array().cloned()).unwrap_or_default();
        metrics.extend(own);
        if !metrics.is_empty() {
            spec.insert("metrics".into(), metrics.into());
        }
        spec.extend(behavior.map(|it| ("behavior".to_owned(), it)));
    }
    if let Some(status) = it.get_mut("status").and_then(Value::as_object_mut) {
        let percent = status.shift_remove("currentCPUUtilizationPercentage");
        let measured = percent.map(|it| {
            let current = json!({ "averageUtilization": it });
            json!([{ "type": "Resource", "resource": { "name": "cpu", "current": current } }])
        });
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.shift_remove("currentReplicas");
        }
        status.insert("currentMetrics".into(), measured.unwrap_or_default());
    }
}

fn to_v1(it: &mut Value) {
    object::put(it, "apiVersion", Some(json!("autoscaling/v1")));
    let (mut others, mut behavior) = (Vec::new(), None);
    if let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) {
        behavior = spec.shift_remove("behavior").filter(|it| !it.is_null());
        let metrics = spec.shift_remove("metrics").unwrap_or_default();
        let mut percent = None;
        for metric in metrics.as_array().into_iter().flatten() {
            match cpu_percent(metric, "target").filter(|_| percent.is_none()) {
                Some(found) => percent = Some(found),
                None => others.push(metric.clone()),
            }
        }
        spec.extend(percent.map(|it| ("targetCPUUtilizationPercentage".to_owned(), it)));
    }
    if let Some(status) = it.get_mut("status").and_then(Value::as_object_mut) {
        let measured = status.shift_remove("currentMetrics").unwrap_or_default();
        let mut measured = measured.as_array().into_iter().flatten();
        let percent = measured.find_map(|it| cpu_percent(it, "current"));
        status.extend(percent.map(|it| ("currentCPUUtilizationPercentage".to_owned(), it)));
        status.entry("currentReplicas").or_insert(json!(0));
    }
    annotate(it, METRICS, (!others.is_empty()).then(|| others.into()));
    annotate(it, BEHAVIOR, behavior);
}

fn annotate(it: &mut Value, name: &str, value: Option<Value>) {
    let (Some(meta), Some(value)) = (object::meta_mut(it), value) else { return };
    let annotations = meta.entry("annotations").or_insert_with(|| Map::new().into());
    if let Value::Object(annotations) = annotations {
        annotations.insert(name.into(), value.to_string().into());
        annotations.sort_keys();
    }
}

fn take_annotation(it: &mut Value, name: &str) -> Option<Value> {
    let meta = object::meta_mut(it)?;
    let annotations = meta.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.shift_remove(name)?;
    if annotations.is_empty() {
        meta.shift_remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}
