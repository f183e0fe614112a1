//! Validation of admission policies (CEL).

use serde_json::Value;

use super::{FieldValue, Problems, maybe_one_of, meta, names};
use crate::refusal::ValidationProblem;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const FAILURES: [&str; 2] = ["Fail", "Ignore"];

pub(in crate::native) fn validating(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    maybe_one_of(&mut out, &spec.get("failurePolicy"), &FAILURES);
    let param = spec.get("paramKind");
    if param.is_set() {
        for field in ["apiVersion", "kind"] {
            if param.get(field).is_empty() {
                out.push(param.get(field).required(""));
            }
        }
    }
    let rules = spec.get("matchConstraints");
    if !rules.is_set() {
        out.push(rules.required(""));
    } else if rules.get("resourceRules").is_empty() {
        out.push(rules.get("resourceRules").required(""));
    }
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for it in [&validations, &annotations] {
            out.push(it.required("validations or auditAnnotations must contain at least one item"));
        }
    }
    for it in validations.items() {
        if it.get("expression").text().trim().is_empty() {
            out.push(it.get("expression").required("expression is not specified"));
        }
    }
    out
}

pub(in crate::native) fn validating_binding(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    if spec.get("policyName").is_empty() {
        out.push(spec.get("policyName").required(""));
    }
    let actions = spec.get("validationActions");
    if actions.is_empty() {
        out.push(actions.required("at least one validation action is required"));
    }
    for it in actions.items() {
        if !ACTIONS.contains(&it.text()) {
            out.push(it.unsupported(&ACTIONS));
        }
    }
    let has = |name: &str| actions.items().iter().any(|it| it.text() == name);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        out.push(ValidationProblem::invalid(actions.path.clone(), actions.value.clone(), detail));
    }
    out
}
