//! Validation of roles and their bindings.

use serde_json::{Value, json};

use super::{FieldValue, Problems, meta, names, obey};
use crate::refusal::ValidationProblem;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(in crate::native) fn role(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::path_segment);
    rules(&mut out, new, true);
    out
}

pub(in crate::native) fn cluster_role(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::path_segment);
    rules(&mut out, new, false);
    let aggregation = FieldValue::root(new).get("aggregationRule");
    if aggregation.is_set() {
        let selectors = aggregation.get("clusterRoleSelectors");
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            out.push(selectors.required(detail));
        }
        for selector in selectors.items() {
            meta::selector(&mut out, &selector);
        }
    }
    out
}

fn rules(out: &mut Problems, role: &Value, namespaced: bool) {
    for rule in FieldValue::root(role).get("rules").items() {
        if rule.get("verbs").is_empty() {
            out.push(rule.get("verbs").required("verbs must contain at least one value"));
        }
        let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            let mut wrong = |detail: &str| out.push(urls.invalid(detail));
            if namespaced {
                wrong("namespaced rules cannot apply to non-resource URLs");
            }
            if ![&groups, &resources, &rule.get("resourceNames")].iter().all(|it| it.is_empty()) {
                wrong("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if groups.is_empty() {
            out.push(groups.required("resource rules must supply at least one api group"));
        }
        if resources.is_empty() {
            out.push(resources.required("resource rules must supply at least one resource"));
        }
    }
}

pub(in crate::native) fn role_binding(new: &Value, old: Option<&Value>) -> Problems {
    binding(new, old, &["Role", "ClusterRole"], true)
}

pub(in crate::native) fn cluster_role_binding(new: &Value, old: Option<&Value>) -> Problems {
    binding(new, old, &["ClusterRole"], false)
}

fn binding(new: &Value, old: Option<&Value>, kinds: &[&str], namespaced: bool) -> Problems {
    let mut out = meta::object(new, old, names::path_segment);
    let it = FieldValue::root(new);
    let role = it.get("roleRef");
    if role.get("apiGroup").text() != GROUP {
        out.push(role.get("apiGroup").unsupported(&[GROUP]));
    }
    if !kinds.contains(&role.get("kind").text()) {
        out.push(role.get("kind").unsupported(kinds));
    }
    if role.get("name").is_empty() {
        out.push(role.get("name").required(""));
    } else {
        obey(&mut out, &role.get("name"), names::path_segment);
    }
    for subject in it.get("subjects").items() {
        self::subject(&mut out, &subject, namespaced);
    }
    if old.is_some_and(|old| FieldValue::root(old).get("roleRef").value != role.value) {
        let text = |name: &str| role.get(name).text();
        let shown =
            json!({ "APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name") });
        out.push(ValidationProblem::invalid(role.path.clone(), shown, "cannot change roleRef"));
    }
    out
}

fn subject(out: &mut Problems, it: &FieldValue<'_>, namespaced: bool) {
    let (name, group) = (it.get("name"), it.get("apiGroup"));
    if name.is_empty() {
        out.push(name.required(""));
    }
    match it.get("kind").text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                obey(out, &name, names::dns_subdomain);
            }
            if !group.is_empty() {
                out.push(group.unsupported(&[""]));
            }
            if !namespaced && it.get("namespace").is_empty() {
                out.push(ValidationProblem::required(it.at("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group.text() != GROUP {
                out.push(group.unsupported(&[GROUP]));
            }
        }
        _ => out.push(it.get("kind").unsupported(&["ServiceAccount", "User", "Group"])),
    }
}
