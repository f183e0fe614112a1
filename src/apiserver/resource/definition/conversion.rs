//! Validation of the conversion between the versions of a CRD.

use std::collections::BTreeSet;

use serde_json::Value;

use super::structure;
use crate::{
    metadata::names,
    refusal::{ProblemKind, ValidationProblem},
};

/// Validates the conversion of a spec in the internal form.
pub(super) fn check(
    all: Option<&Value>,
    preserves: bool,
    known_reviews: bool,
    found: &mut Vec<ValidationProblem>,
) {
    let Some(all) = all.filter(|it| !it.is_null()) else { return };
    let strategy = structure::text(all, "strategy");
    let path = "spec.conversion";
    if strategy != "None" && preserves {
        let text = "must be None if spec.preserveUnknownFields is true";
        found.push(ValidationProblem::invalid(format!("{path}.strategy"), strategy, text));
    }
    match strategy {
        "" => found.push(ValidationProblem::required(format!("{path}.strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            let known = ["None", "Webhook"].map(String::from).into();
            let kind = ProblemKind::NotSupported(other.into(), known);
            found.push(ValidationProblem::new(format!("{path}.strategy"), kind));
        }
    }
    let config = all.get("webhookClientConfig").filter(|it| !it.is_null());
    let has_reviews = structure::several(all, "conversionReviewVersions").next().is_some();
    if strategy == "Webhook" {
        webhook(config, &format!("{path}.webhookClientConfig"), found);
        reviews(all, known_reviews, &format!("{path}.conversionReviewVersions"), found);
        return;
    }
    for (field, set) in
        [("webhookClientConfig", config.is_some()), ("conversionReviewVersions", has_reviews)]
    {
        if set {
            let text = "should not be set when strategy is not set to Webhook";
            found.push(ValidationProblem::forbidden(format!("{path}.{field}"), text));
        }
    }
}

fn webhook(config: Option<&Value>, path: &str, found: &mut Vec<ValidationProblem>) {
    let Some(config) = config else {
        found.push(ValidationProblem::required(path, "required when strategy is set to Webhook"));
        return;
    };
    let present = |field: &str| config.get(field).filter(|it| !it.is_null());
    match (present("url").and_then(Value::as_str), present("service")) {
        (Some(url), None) => check_url(url, &format!("{path}.url"), found),
        (None, Some(service)) => check_service(service, &format!("{path}.service"), found),
        _ => found
            .push(ValidationProblem::required(path, "exactly one of url or service is required")),
    }
}

fn check_url(url: &str, path: &str, found: &mut Vec<ValidationProblem>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        let text = format!("'https' is the only allowed URL scheme{FORM}");
        found.push(ValidationProblem::invalid(path, scheme, text));
    }
    if host.is_empty() {
        found.push(ValidationProblem::invalid(path, host, format!("host must be provided{FORM}")));
    }
    let parts = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    for (part, text) in parts {
        if !part.is_empty() {
            found.push(ValidationProblem::invalid(path, part, text));
        }
    }
}

fn check_service(service: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    for field in ["name", "namespace"] {
        if structure::text(service, field).is_empty() {
            found.push(ValidationProblem::required(
                format!("{path}.{field}"),
                format!("service {field} is required"),
            ));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let text = "port is not valid: must be between 1 and 65535, inclusive";
        found.push(ValidationProblem::invalid(format!("{path}.port"), port, text));
    }
    let url_path = structure::text(service, "path");
    if !url_path.is_empty() && !url_path.starts_with('/') {
        let text = "must start with a '/'";
        found.push(ValidationProblem::invalid(format!("{path}.path"), url_path, text));
    }
}

fn reviews(all: &Value, known_reviews: bool, path: &str, found: &mut Vec<ValidationProblem>) {
    let versions: Vec<&str> =
        structure::several(all, "conversionReviewVersions").filter_map(Value::as_str).collect();
    if versions.is_empty() {
        found.push(ValidationProblem::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, version) in versions.iter().enumerate() {
        let at = format!("{path}[{at}]");
        if !seen.insert(*version) {
            found.push(ValidationProblem::invalid(at, *version, "duplicate version"));
            continue;
        }
        for text in names::dns_1035_label(version) {
            found.push(ValidationProblem::invalid(at.clone(), *version, text));
        }
    }
    if known_reviews && !versions.iter().any(|it| matches!(*it, "v1" | "v1beta1")) {
        let given = all.get("conversionReviewVersions").cloned().unwrap_or_default();
        found.push(ValidationProblem::invalid(
            path,
            given,
            "must include at least one of v1, v1beta1",
        ));
    }
}
