//! References to owners.

use serde_json::Value;

use crate::refusal::{Problem, ProblemKind, go};

const FIELD: &str = "metadata.ownerReferences";
/// How many controllers too many are told, each with the whole list: a body must not become terabytes.
const TOLD_MAX: usize = 3;

/// What is wrong with the owners of an object.
pub(super) fn check(owners: Option<&Value>) -> Vec<Problem> {
    let owners = owners.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    let mut controller: Option<&str> = None;
    let mut shown: Option<String> = None;
    let mut told = 0_usize;
    for owner in owners {
        found.extend(check_one(owner));
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let name = text(owner, "name");
        match controller {
            None => controller = Some(name),
            Some(first) if told < TOLD_MAX => {
                let shown = shown.get_or_insert_with(|| go_print_all(owners));
                told = told.saturating_add(1);
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                found.push(Problem::new(FIELD, ProblemKind::InvalidGo(shown.clone(), detail)));
            }
            Some(_) => {}
        }
    }
    found
}

fn go_print_all(owners: &[Value]) -> String {
    let all: Vec<String> = owners.iter().map(go_print).collect();
    format!("[]v1.OwnerReference{{{}}}", all.join(", "))
}

fn check_one(owner: &Value) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut empty = |field: &str, value: &str, what: &str| {
        let detail = format!("{what} must not be empty");
        found.push(Problem::invalid(format!("{FIELD}.{field}"), value, detail));
    };
    let api_version = text(owner, "apiVersion");
    // What cannot be read as a group and a version has no version.
    if api_version.is_empty() || api_version.ends_with('/') || api_version.matches('/').count() > 1
    {
        empty("apiVersion", api_version, "version");
    }
    for field in ["kind", "name", "uid"] {
        if text(owner, field).is_empty() {
            empty(field, "", field);
        }
    }
    if (api_version, text(owner, "kind")) == ("v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner".to_owned();
        found.push(Problem::new(FIELD, ProblemKind::InvalidGo(go_print(owner), detail)));
    }
    found
}

fn text<'a>(owner: &'a Value, field: &str) -> &'a str {
    owner.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// As Go prints it with `%#v`. The real server shows addresses in memory for the flags, which nobody can compare.
fn go_print(owner: &Value) -> String {
    let quoted = |field: &str| go::quote(text(owner, field));
    let flag = |field: &str| match owner.get(field) {
        Some(Value::Bool(_)) => "(*bool)(0xc000000000)",
        _ => "(*bool)(nil)",
    };
    format!(
        "v1.OwnerReference{{APIVersion:{}, Kind:{}, Name:{}, UID:{}, Controller:{}, BlockOwnerDeletion:{}}}",
        quoted("apiVersion"),
        quoted("kind"),
        quoted("name"),
        quoted("uid"),
        flag("controller"),
        flag("blockOwnerDeletion")
    )
}
