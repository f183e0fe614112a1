//! Validation of owner references.

use serde_json::Value;

use crate::refusal::ValidationProblem;

const FIELD: &str = "metadata.ownerReferences";
/// Limit of reported surplus controllers: each message contains the whole list, so a response could become terabytes large.
const REPORTED_MAX: usize = 3;

/// Validates the owner references of an object.
pub(crate) fn check(owners: Option<&Value>) -> Vec<ValidationProblem> {
    let owners = owners.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    let mut controller: Option<String> = None;
    let mut reported = 0_usize;
    for owner in owners {
        found.extend(check_one(owner));
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(name),
            Some(first) if reported < REPORTED_MAX => {
                reported = reported.saturating_add(1);
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                found.push(ValidationProblem::invalid(FIELD, owners.to_vec(), detail));
            }
            Some(_) => {}
        }
    }
    found
}

fn check_one(owner: &Value) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    let mut empty = |field: &str, value: &str, detail: &str| {
        found.push(ValidationProblem::invalid(format!("{FIELD}.{field}"), value, detail));
    };
    let api_version = text(owner, "apiVersion");
    // A string that is not a group and a version has no version.
    if api_version.is_empty() || api_version.ends_with('/') || api_version.matches('/').count() > 1
    {
        empty("apiVersion", api_version, "version must not be empty");
    }
    for field in ["kind", "name", "uid"] {
        if text(owner, field).is_empty() {
            empty(field, "", "must not be empty");
        }
    }
    if (api_version, text(owner, "kind")) == ("v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner".to_owned();
        found.push(ValidationProblem::invalid(FIELD, owner.clone(), detail));
    }
    found
}

fn text<'a>(owner: &'a Value, field: &str) -> &'a str {
    owner.get(field).and_then(Value::as_str).unwrap_or_default()
}
