//! Validation of the configurations of admission webhooks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FieldValue, Problems, maybe_one_of, meta, names, obey};
use crate::{refusal::ValidationProblem, schema::expressions::condition};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// The supported versions of `AdmissionReview`, newest first.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// Validates a mutating or a validating configuration.
pub(in crate::native) fn configuration(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let mut seen = BTreeSet::new();
    for hook in FieldValue::root(new).get("webhooks").items() {
        self::hook(&mut out, &hook);
        versions(&mut out, &hook.get("admissionReviewVersions"));
        let name = hook.get("name");
        if !name.is_empty() && !seen.insert(name.text()) {
            out.push(name.duplicate());
        }
    }
    out
}

fn hook(out: &mut Problems, it: &FieldValue<'_>) {
    full_name(out, &it.get("name"));
    for rule in it.get("rules").items() {
        self::rule(out, &rule);
    }
    for condition in it.get("matchConditions").items() {
        for field in ["expression", "name"] {
            let it = condition.get(field);
            if it.text().trim().is_empty() {
                out.push(it.required(""));
            } else if field == "expression"
                && let Some(fault) = condition::fault(it.text())
            {
                out.push(it.invalid(format!("compilation failed: {fault}")));
            }
        }
    }
    maybe_one_of(out, &it.get("failurePolicy"), &["Fail", "Ignore"]);
    maybe_one_of(out, &it.get("matchPolicy"), &["Equivalent", "Exact"]);
    let effects = it.get("sideEffects");
    if effects.is_set() {
        maybe_one_of(out, &effects, &SIDE_EFFECTS);
    } else {
        out.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    let timeout = it.get("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.number()) {
        out.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    meta::selector(out, &it.get("namespaceSelector"));
    meta::selector(out, &it.get("objectSelector"));
    maybe_one_of(out, &it.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    let client = it.get("clientConfig");
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_set() == service.is_set() {
        out.push(client.required("exactly one of url or service is required"));
    } else if url.is_set() {
        self::url(out, &url);
    } else {
        self::service(out, &service);
    }
}

/// Checks that the name of a webhook is a DNS name with at least three parts.
fn full_name(out: &mut Problems, it: &FieldValue<'_>) {
    let problems = names::dns_subdomain(it.text());
    if it.is_empty() {
        out.push(it.required(""));
    } else if !problems.is_empty() {
        out.push(it.invalid(problems.join(",")));
    } else if it.text().split('.').count() < 3 {
        out.push(it.invalid("should be a domain with at least three segments separated by dots"));
    }
}

fn rule(out: &mut Problems, it: &FieldValue<'_>) {
    let operations = it.get("operations");
    required_alone(out, &operations, "operations");
    for operation in operations.items() {
        maybe_one_of(out, &operation, &OPERATIONS);
    }
    required_alone(out, &it.get("apiGroups"), "API groups");
    required_alone(out, &it.get("apiVersions"), "API versions");
    for version in it.get("apiVersions").items() {
        if version.is_empty() {
            out.push(version.required(""));
        }
    }
    resources(out, &it.get("resources"));
    maybe_one_of(out, &it.get("scope"), &["*", "Cluster", "Namespaced"]);
}

/// Checks that a list is not empty, and that a wildcard is its only item.
fn required_alone(out: &mut Problems, list: &FieldValue<'_>, word: &str) {
    let items = list.items();
    if items.is_empty() {
        out.push(list.required(""));
    }
    if items.len() > 1 && items.iter().any(|it| it.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {word}");
        out.push(list.invalid(detail));
    }
}

fn resources(out: &mut Problems, list: &FieldValue<'_>) {
    let items = list.items();
    if items.is_empty() {
        out.push(list.required(""));
    }
    let mut all_of: BTreeSet<&str> = BTreeSet::new();
    let mut of_all: BTreeSet<&str> = BTreeSet::new();
    let mut plain = false;
    for it in &items {
        let text = it.text();
        if text.is_empty() {
            out.push(it.required(""));
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if all_of.contains(resource) {
            out.push(it.invalid(format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if of_all.contains(part) {
            out.push(it.invalid(format!("if '*/{part}' is present, must not specify {text}")));
        }
        if part == "*" {
            all_of.insert(resource);
        }
        if resource == "*" {
            of_all.insert(part);
        }
    }
    let has = |text: &str| items.iter().any(|it| it.text() == text);
    let mut wrong = |detail| out.push(list.invalid(detail));
    if items.len() > 1 && has("*/*") {
        wrong("if '*/*' is present, must not specify other resources");
    }
    if has("*") && plain {
        wrong("if '*' is present, must not specify other resources without subresources");
    }
}

fn versions(out: &mut Problems, list: &FieldValue<'_>) {
    let items = list.items();
    if items.is_empty() {
        out.push(list.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for it in &items {
        if seen.insert(it.text()) {
            obey(out, it, names::dns_1035_label);
        } else {
            out.push(it.invalid("duplicate version"));
        }
    }
    if !items.iter().any(|it| VERSIONS.contains(&it.text())) {
        let detail = "must include at least one of v1, v1beta1";
        out.push(list.invalid(detail));
    }
}

const URL: &str = "desired format: https://host[/path]";

fn url(out: &mut Problems, it: &FieldValue<'_>) {
    let text = it.text();
    let wrong =
        |shown: &str, detail: String| ValidationProblem::invalid(it.path.clone(), shown, detail);
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        out.push(wrong(scheme, format!("'https' is the only allowed URL scheme; {URL}")));
    }
    if host.is_empty() || scheme.is_empty() {
        out.push(wrong("", format!("host must be provided; {URL}")));
    }
    if !user.is_empty() {
        out.push(wrong(user, "user information is not permitted in the URL".into()));
    }
    if !fragment.is_empty() {
        out.push(wrong(fragment, "fragments are not permitted in the URL".into()));
    }
    if !query.is_empty() {
        out.push(wrong(query, "query parameters are not permitted in the URL".into()));
    }
}

fn service(out: &mut Problems, it: &FieldValue<'_>) {
    for field in ["name", "namespace"] {
        if it.get(field).is_empty() {
            let detail = format!("service {field} is required");
            out.push(it.get(field).required(&detail));
        }
    }
    let port = it.get("port");
    if port.is_set() && !(1..=65_535).contains(&port.number()) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        out.push(port.invalid(detail));
    }
    let path = it.get("path");
    if !path.is_set() || path.text() == "/" {
        return;
    }
    if !path.text().starts_with('/') {
        out.push(path.invalid("must start with a '/'"));
    }
    let parts = path.text().trim_start_matches('/').trim_end_matches('/');
    for (at, part) in parts.split('/').enumerate() {
        if part.is_empty() {
            out.push(path.invalid(format!("segment[{at}] may not be empty")));
            continue;
        }
        for problem in names::dns_subdomain(part) {
            out.push(path.invalid(format!("segment[{at}]: {problem}")));
        }
    }
}
