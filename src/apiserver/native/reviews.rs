//! Responses to reviews without RBAC: everything is allowed, and no token is valid.

use serde_json::{Value, json};

use super::check::{FieldValue, Problems};
use crate::{
    object,
    refusal::{Refusal, ValidationProblem},
};

/// Responds to a `SelfSubjectAccessReview`: allowed.
pub(super) fn own_access(it: Value) -> Result<Value, Refusal> {
    allowed(it, false)
}

/// Responds to `SubjectAccessReview` and `LocalSubjectAccessReview`: allowed for every user.
pub(super) fn access(it: Value) -> Result<Value, Refusal> {
    allowed(it, true)
}

fn allowed(mut it: Value, of_somebody: bool) -> Result<Value, Refusal> {
    let mut out = Problems::new();
    let spec = FieldValue::root(&it).get("spec");
    let attributes = spec.get("resourceAttributes");
    let elsewhere = spec.get("nonResourceAttributes");
    if attributes.is_set() && elsewhere.is_set() {
        let text = |field: &str| elsewhere.get(field).text();
        let shown = json!({ "Path": text("path"), "Verb": text("verb") });
        let detail = "cannot be specified in combination with resourceAttributes";
        out.push(ValidationProblem::invalid(elsewhere.path.clone(), shown, detail));
    }
    if !attributes.is_set() && !elsewhere.is_set() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        out.push(ValidationProblem::invalid(attributes.path.clone(), Value::Null, detail));
    }
    let named = !spec.get("user").text().is_empty() || !spec.get("groups").items().is_empty();
    if of_somebody && !named {
        let detail = "at least one of user or group must be specified";
        out.push(ValidationProblem::invalid("spec.user", "", detail));
    }
    out.extend(with_metadata(&it));
    let here = object::meta(&it, "namespace");
    let there = attributes.get("namespace");
    if !here.is_empty() && attributes.is_set() && there.text() != here {
        out.push(ValidationProblem::invalid(
            there.path.clone(),
            there.text(),
            "must match metadata.namespace",
        ));
    }
    if !out.is_empty() {
        // The real server does not name the kind here.
        return Err(Refusal::invalid("authorization.k8s.io", "", "", &out));
    }
    object::put(&mut it, "status", Some(json!({ "allowed": true })));
    Ok(it)
}

/// Reports metadata in an access review: reviews have no names.
fn with_metadata(it: &Value) -> Option<ValidationProblem> {
    let meta = it.get("metadata").and_then(Value::as_object)?;
    let mut given = meta.clone();
    given.retain(|field, value| field != "namespace" && !value.is_null());
    let is_called = given.keys().any(|it| it != "managedFields");
    is_called.then(|| ValidationProblem::invalid("metadata", given, "must be empty"))
}

/// Responds to a `SelfSubjectRulesReview`: everything is allowed.
pub(super) fn rules(mut it: Value) -> Result<Value, Refusal> {
    if FieldValue::root(&it).get("spec").get("namespace").text().is_empty() {
        return Err(Refusal::bad_request("no namespace on request"));
    }
    let status = json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    });
    // The response does not repeat the request.
    object::put(&mut it, "metadata", Some(json!({})));
    object::put(&mut it, "spec", Some(json!({})));
    object::put(&mut it, "status", Some(status));
    Ok(it)
}

/// Responds to a `TokenReview`: no token is valid.
pub(super) fn token(mut it: Value) -> Result<Value, Refusal> {
    if FieldValue::root(&it).get("spec").get("token").text().is_empty() {
        return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
    }
    object::put(&mut it, "status", Some(json!({ "user": {}, "error": "invalid bearer token" })));
    Ok(it)
}

/// Responds to a `SelfSubjectReview`: every user is the administrator.
pub(super) fn own_user(mut it: Value) -> Value {
    let groups = ["system:masters", "system:authenticated"];
    let user = json!({ "username": "system:admin", "groups": groups });
    object::put(&mut it, "status", Some(json!({ "userInfo": user })));
    it
}
