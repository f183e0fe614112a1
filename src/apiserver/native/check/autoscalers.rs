//! Validation of `HorizontalPodAutoscaler`s in their form of `autoscaling/v2`.

use super::{FieldValue, Problems, meta, names, obey};
use crate::refusal::ValidationProblem;

const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const POLICIES: [&str; 2] = ["Pods", "Percent"];
const SELECTIONS: [&str; 3] = ["Max", "Min", "Disabled"];
/// Limit of the period and of the window of a policy, as on the real server.
const PERIOD_SECONDS_MAX: i64 = 1800;
const WINDOW_SECONDS_MAX: i64 = 3600;

pub(in crate::native) fn autoscaler(
    new: &serde_json::Value,
    old: Option<&serde_json::Value>,
) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if least.is_set() && least.number() < 1 {
        out.push(least.invalid("must be greater than or equal to 1"));
    }
    if most.number() < 1 {
        out.push(most.required("must be set and greater than 0"));
    }
    if least.is_set() && most.number() < least.number() {
        out.push(most.invalid("must be greater than or equal to `minReplicas`"));
    }
    let target = spec.get("scaleTargetRef");
    for field in ["kind", "name"] {
        let it = target.get(field);
        if it.is_empty() {
            out.push(it.required(""));
        } else {
            obey(&mut out, &it, names::path_segment);
        }
    }
    let version = target.get("apiVersion");
    if !version.text().contains('/') && target.get("kind").text() != "ReplicationController" {
        let detail = "apiVersion must specify API group";
        out.push(ValidationProblem::invalid(version.path.clone(), version.text(), detail));
    }
    for it in spec.get("metrics").items() {
        metric(&mut out, &it);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let it = spec.get("behavior").get(direction);
        if it.is_set() {
            behavior(&mut out, &it);
        }
    }
    out
}

fn metric(out: &mut Problems, it: &FieldValue<'_>) {
    let kind = it.get("type");
    if kind.is_empty() {
        out.push(kind.required("must specify a metric source type"));
        return;
    }
    if !METRICS.contains(&kind.text()) {
        // Reported for the type, and for the source that the type should name.
        out.push(kind.unsupported(&METRICS));
        out.push(kind.unsupported(&METRICS));
        return;
    }
    let first = kind.text().get(..1).unwrap_or_default().to_lowercase();
    let field = format!("{first}{}", kind.text().get(1..).unwrap_or_default());
    let source = it.get(&field);
    if !source.is_set() {
        out.push(source.required("must populate information for the given metric source"));
        return;
    }
    if matches!(field.as_str(), "resource" | "containerResource") && source.get("name").is_empty() {
        out.push(source.get("name").required("must specify a resource name"));
    }
    target(out, &source.get("target"));
}

fn target(out: &mut Problems, it: &FieldValue<'_>) {
    let kind = it.get("type");
    match kind.text() {
        "" => out.push(kind.required("must specify a metric target type")),
        "Utilization" | "Value" | "AverageValue" => {}
        _ => out.push(kind.invalid("must be either Utilization, Value, or AverageValue")),
    }
    let share = it.get("averageUtilization");
    if share.is_set() && share.number() < 1 {
        out.push(share.invalid("must be greater than 0"));
    }
    let values = ["value", "averageValue"].map(|name| it.get(name));
    for value in &values {
        let amount = super::amount(value);
        if value.is_set() && !amount.is_some_and(|it| !it.zero() && !it.negative()) {
            out.push(value.invalid("must be positive"));
        }
    }
    if !share.is_set() && !values.iter().any(FieldValue::is_set) {
        let detail = "must set either a target raw value or a target utilization";
        out.push(share.required(detail));
    }
}

fn behavior(out: &mut Problems, it: &FieldValue<'_>) {
    let window = it.get("stabilizationWindowSeconds");
    if window.is_set() && window.number() < 0 {
        out.push(window.invalid("must be greater than or equal to zero"));
    }
    if window.number() > WINDOW_SECONDS_MAX {
        let detail = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
        out.push(window.invalid(detail));
    }
    super::maybe_one_of(out, &it.get("selectPolicy"), &SELECTIONS);
    let policies = it.get("policies");
    if policies.items().is_empty() {
        out.push(policies.required("must specify at least one Policy"));
    }
    for it in policies.items() {
        if !POLICIES.contains(&it.get("type").text()) {
            out.push(it.get("type").unsupported(&POLICIES));
        }
        for field in ["value", "periodSeconds"] {
            if it.get(field).number() < 1 {
                out.push(it.get(field).invalid("must be greater than zero"));
            }
        }
        let period = it.get("periodSeconds");
        if period.number() > PERIOD_SECONDS_MAX {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            out.push(period.invalid(detail));
        }
    }
}
