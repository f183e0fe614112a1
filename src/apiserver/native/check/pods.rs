//! Validation of Pods and Pod templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FieldValue, Problems, containers, maybe_one_of, meta, names, obey, one_of, volumes};
use crate::{refusal::ValidationProblem, request::json::sorted_json};

const CHANGES: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(in crate::native) fn pod(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    self::spec(&mut out, &spec, &BTreeSet::new());
    match old {
        Some(old) => changes(&mut out, &spec, &FieldValue::root(old).get("spec")),
        None => trimmed_images(&mut out, &spec),
    }
    out
}

/// Checks images in Pods for surrounding spaces. Templates may have them, because older servers accepted them.
fn trimmed_images(out: &mut Problems, spec: &FieldValue<'_>) {
    for container in ["containers", "initContainers"].iter().flat_map(|it| spec.get(it).items()) {
        let image = container.get("image");
        if image.text().trim() != image.text() {
            out.push(image.invalid("must not have leading or trailing whitespace"));
        }
    }
}

pub(in crate::native) fn pod_template(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    template(&mut out, &FieldValue::root(new).get("template"));
    out
}

/// Validates the Pod template of another object.
pub(super) fn template(out: &mut Problems, it: &FieldValue<'_>) {
    template_with(out, it, &BTreeSet::new());
}

/// Validates a Pod template whose Pods get additional volumes, from claims.
pub(super) fn template_with(out: &mut Problems, it: &FieldValue<'_>, claims: &BTreeSet<&str>) {
    let head = it.get("metadata");
    meta::labels(out, &head.get("labels").named(it.at("labels")));
    meta::annotations(out, &head.get("annotations").named(it.at("annotations")));
    spec(out, &it.get("spec"), claims);
    let ephemeral = it.get("spec").get("ephemeralContainers");
    if !ephemeral.is_empty() {
        out.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

fn sysctls(out: &mut Problems, list: &FieldValue<'_>) {
    let mut seen = BTreeSet::new();
    for name in list.items().iter().map(|it| it.get("name")) {
        if name.is_empty() {
            out.push(name.required(""));
        } else if !seen.insert(name.text()) {
            out.push(name.duplicate());
        } else {
            obey(out, &name, names::sysctl);
        }
    }
}

fn spec(out: &mut Problems, it: &FieldValue<'_>, claims: &BTreeSet<&str>) {
    let mut volumes = volumes::all(out, &it.get("volumes"));
    volumes.extend(claims);
    containers::main(out, &it.get("containers"), &volumes);
    containers::init(out, &it.get("initContainers"), &it.get("containers"), &volumes);
    one_of(out, &it.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(out, &it.get("dnsPolicy"), &dns);
    meta::labels(out, &it.get("nodeSelector"));
    if it.get("hostNetwork").flag() {
        host_network(out, it);
    }
    containers::ids(out, &it.get("securityContext"));
    sysctls(out, &it.get("securityContext").get("sysctls"));
    affinity(out, &it.get("affinity"));
    spread(out, &it.get("topologySpreadConstraints"));
    for field in ["serviceAccountName", "nodeName"] {
        if !it.get(field).is_empty() {
            obey(out, &it.get(field), names::dns_subdomain);
        }
    }
    let deadline = it.get("activeDeadlineSeconds");
    if deadline.is_set() && !(1..=i64::from(i32::MAX)).contains(&deadline.number()) {
        out.push(deadline.invalid("must be between 1 and 2147483647, inclusive"));
    }
    for field in ["hostname", "subdomain"] {
        if !it.get(field).is_empty() {
            obey(out, &it.get(field), names::dns_label);
        }
    }
    tolerations(out, &it.get("tolerations"));
    for field in ["priorityClassName", "runtimeClassName"] {
        if it.get(field).is_set() {
            obey(out, &it.get(field), names::dns_subdomain);
        }
    }
    let policies = ["PreemptLowerPriority", "Never"];
    maybe_one_of(out, &it.get("preemptionPolicy"), &policies);
}

fn host_network(out: &mut Problems, spec: &FieldValue<'_>) {
    for port in spec.get("containers").items().iter().flat_map(|it| it.get("ports").items()) {
        let (host, inner) = (port.get("hostPort"), port.get("containerPort"));
        if host.number() != inner.number() {
            // The path of the real server is that of the list, with one more dot.
            let detail = "must match `hostPort` when `hostNetwork` is true";
            out.push(inner.invalid(detail));
        }
    }
}

fn affinity(out: &mut Problems, it: &FieldValue<'_>) {
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let node = it.get("nodeAffinity");
    let terms = node.get(required).get("nodeSelectorTerms");
    if node.get(required).is_set() && terms.is_empty() {
        out.push(terms.required("must have at least one node selector term"));
    }
    let weight = |out: &mut Problems, it: &FieldValue<'_>| {
        if !(1..=100).contains(&it.get("weight").number()) {
            out.push(it.get("weight").invalid("must be in the range 1-100"));
        }
    };
    for term in node.get(preferred).items() {
        weight(out, &term);
    }
    for group in ["podAffinity", "podAntiAffinity"] {
        for term in it.get(group).get(required).items() {
            affinity_term(out, &term);
        }
        for term in it.get(group).get(preferred).items() {
            weight(out, &term);
            affinity_term(out, &term.get("podAffinityTerm"));
        }
    }
}

fn affinity_term(out: &mut Problems, it: &FieldValue<'_>) {
    meta::selector(out, &it.get("labelSelector").named(it.at("matchExpressions")));
    let key = it.get("topologyKey");
    if key.is_empty() {
        out.push(key.required("can not be empty"));
    }
    let problems = names::qualified_name(key.text()).into_iter();
    out.extend(problems.map(|it| ValidationProblem::invalid(key.path.clone(), key.text(), it)));
}

fn spread(out: &mut Problems, list: &FieldValue<'_>) {
    for it in list.items() {
        if it.get("maxSkew").number() <= 0 {
            out.push(it.get("maxSkew").invalid("must be greater than zero"));
        }
        if it.get("topologyKey").is_empty() {
            out.push(it.get("topologyKey").required("can not be empty"));
        }
        let action = it.get("whenUnsatisfiable");
        maybe_one_of(out, &action, &["DoNotSchedule", "ScheduleAnyway"]);
    }
}

fn tolerations(out: &mut Problems, list: &FieldValue<'_>) {
    for it in list.items() {
        let (key, operator, effect) = (it.get("key"), it.get("operator"), it.get("effect"));
        if !key.is_empty() {
            obey(out, &key, names::qualified_name);
        } else if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            out.push(text_invalid(&operator, detail));
        }
        if it.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            out.push(text_invalid(&effect, detail));
        }
        match operator.text() {
            "" | "Equal" => {
                let problems = names::label_value(it.get("value").text());
                if !problems.is_empty() {
                    let value = it.get("value").named(operator.path.clone());
                    out.push(value.invalid(problems.join(";")));
                }
            }
            "Exists" if it.get("value").is_empty() => {}
            "Exists" => {
                out.push(operator.invalid("value must be empty when `operator` is 'Exists'"));
            }
            _ => out.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            maybe_one_of(out, &effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

fn text_invalid(field: &FieldValue<'_>, detail: &str) -> ValidationProblem {
    ValidationProblem::invalid(field.path.clone(), field.text(), detail)
}

/// Checks that an update of a Pod changes only the few mutable fields.
fn changes(out: &mut Problems, new: &FieldValue<'_>, old: &FieldValue<'_>) {
    for list in ["containers", "initContainers"] {
        if new.get(list).items().len() != old.get(list).items().len() {
            out.push(new.get(list).forbidden("pod updates may not add or remove containers"));
            return;
        }
        // Reported twice: by the validation of the spec, and by that of the change.
        for image in new.get(list).items().iter().map(|it| it.get("image")) {
            if image.is_empty() {
                out.push(image.required(""));
            }
        }
    }
    let deadline = new.get("activeDeadlineSeconds");
    let before = old.get("activeDeadlineSeconds");
    if before.is_set() && !deadline.is_set() {
        out.push(deadline.invalid("must not update from a positive integer to nil value"));
    } else if before.is_set() && deadline.number() > before.number() {
        out.push(deadline.invalid("must be less than or equal to previous value"));
        return;
    }
    let kept = new.get("tolerations");
    let texts: BTreeSet<String> = kept.items().iter().map(|it| sorted_json(it.value)).collect();
    for toleration in old.get("tolerations").items() {
        if !texts.contains(&sorted_json(toleration.value)) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            out.push(kept.forbidden(detail));
            break;
        }
    }
    if fixed(new.value) != fixed(old.value) {
        out.push(new.forbidden(CHANGES));
    }
}

/// Returns a Pod spec without its mutable fields.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.shift_remove("activeDeadlineSeconds");
        fields.shift_remove("tolerations");
        for list in ["containers", "initContainers"] {
            let list = fields.get_mut(list).and_then(Value::as_array_mut);
            for container in list.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.shift_remove("image");
            }
        }
    }
    spec
}
