//! Reviews of access, rules, users and tokens.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    Shared, object,
    rbac::{
        Attributes, User, decide, policy,
        policy::{Permissions, listed},
        rule::PolicyRule,
        tokens,
    },
    reply::Reply,
    request::{ApiRequest, route::RequestTarget},
    verbs::ApiCall,
};

/// Adds the result to a review that has been validated, and may have lost its spec.
pub(crate) fn add_result(call: &ApiCall<'_>, asked: &Value, mut review: Value) -> Value {
    let (shared, user) = (call.shared, &call.request.user);
    let enabled = shared.rbac.is_enabled();
    let status = match call.view.kind.def.kind.as_str() {
        "SelfSubjectAccessReview" if enabled => Some(access(shared, user, asked)),
        "SubjectAccessReview" | "LocalSubjectAccessReview" if enabled => {
            Some(access(shared, &subject(asked), asked))
        }
        "SelfSubjectRulesReview" if enabled => {
            let namespace = object::text(asked, "/spec/namespace");
            Some(rules(&policy(shared).permissions(user, namespace)))
        }
        "TokenReview" => token(shared, asked),
        _ => None,
    };
    if let Some(status) = status {
        object::put(&mut review, "status", Some(status));
    }
    review
}

/// Responds to a `SelfSubjectReview`, which has no spec.
pub(crate) fn own_user(
    shared: &Shared,
    request: &ApiRequest,
    target: &RequestTarget,
) -> Option<Reply> {
    let is_it = target.group == "authentication.k8s.io"
        && target.version == "v1"
        && target.plural == "selfsubjectreviews"
        && (&target.namespace, &target.name) == (&None, &None);
    (is_it && request.method == "POST").then(|| {
        let review = json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "creationTimestamp": shared.store().now() },
            "status": { "userInfo": request.user.to_json() },
        });
        Reply::Document(201, review)
    })
}

fn access(shared: &Shared, user: &User, review: &Value) -> Value {
    let text = |pointer: &str| object::text(review, pointer).to_owned();
    let wanted = if review.pointer("/spec/nonResourceAttributes").is_some_and(Value::is_object) {
        let (verb, path) =
            (text("/spec/nonResourceAttributes/verb"), text("/spec/nonResourceAttributes/path"));
        Attributes { verb, path, ..Attributes::default() }
    } else {
        let text = |field: &str| text(&format!("/spec/resourceAttributes/{field}"));
        Attributes {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            path: String::new(),
        }
    };
    let decision = decide(shared, user, &wanted);
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        object::put(&mut status, "reason", Some(decision.reason.into()));
    }
    status
}

/// Returns the user in the spec of a review. No groups are added.
fn subject(review: &Value) -> User {
    let extra = review.pointer("/spec/extra").cloned().unwrap_or_default();
    let extra: BTreeMap<String, Vec<String>> = serde_json::from_value(extra).unwrap_or_default();
    User {
        name: object::text(review, "/spec/user").into(),
        uid: object::text(review, "/spec/uid").into(),
        groups: object::strings(review, "/spec/groups"),
        extra,
    }
}

fn rules(permissions: &Permissions) -> Value {
    let of = |paths: bool| {
        let rules = permissions.rules.iter().filter(|it| it.paths.is_empty() != paths);
        rules.map(PolicyRule::to_json).collect::<Vec<_>>()
    };
    let incomplete = !permissions.problems.is_empty();
    let mut status = json!({
        "resourceRules": of(false),
        "nonResourceRules": of(true),
        "incomplete": incomplete,
    });
    if incomplete {
        object::put(&mut status, "evaluationError", Some(listed(&permissions.problems).into()));
    }
    status
}

/// Returns the status for a valid token; `None` for others, which keep their status.
fn token(shared: &Shared, review: &Value) -> Option<Value> {
    let mut audiences = object::strings(review, "/spec/audiences");
    if audiences.is_empty() {
        audiences.push(tokens::ISSUER.into());
    }
    let token = tokens::verify_for(shared, object::text(review, "/spec/token"), &audiences)?;
    Some(json!({
        "authenticated": true,
        "user": token.user.to_json(),
        "audiences": token.audiences,
    }))
}
