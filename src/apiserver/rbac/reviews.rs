//! Reviews: who am I, what may I do, what may others do, whose token is this.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    Shared, object,
    rbac::{
        Attributes, User, decide, policy,
        policy::{Held, listed},
        rule::Rule,
        tokens,
    },
    reply::Reply,
    request::{Ask, route::Target},
    verbs::Call,
};

/// Puts the answer into a review whose form has been checked, and which may have lost its question.
pub(crate) fn answer(call: &Call<'_>, asked: &Value, mut review: Value) -> Value {
    let (shared, user) = (call.shared, &call.ask.user);
    let enabled = shared.rbac.is_enabled();
    let status = match call.view.kind.def.kind.as_str() {
        "SelfSubjectAccessReview" if enabled => Some(access(shared, user, asked)),
        "SubjectAccessReview" | "LocalSubjectAccessReview" if enabled => {
            Some(access(shared, &subject(asked), asked))
        }
        "SelfSubjectRulesReview" if enabled => {
            let namespace = object::text(asked, "/spec/namespace");
            Some(rules(&policy(shared).held(user, namespace)))
        }
        "TokenReview" => token(shared, asked),
        _ => None,
    };
    if let Some(status) = status {
        object::put(&mut review, "status", Some(status));
    }
    review
}

/// Answers `SelfSubjectReview`, which has nothing but its answer.
pub(crate) fn own_user(shared: &Shared, ask: &Ask, target: &Target) -> Option<Reply> {
    let is_it = target.group == "authentication.k8s.io"
        && target.version == "v1"
        && target.plural == "selfsubjectreviews"
        && (&target.namespace, &target.name) == (&None, &None);
    (is_it && ask.method == "POST").then(|| {
        let review = json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "creationTimestamp": shared.store().now() },
            "status": { "userInfo": ask.user.to_json() },
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

/// Returns the user that a review is about. Nothing is added to what it says.
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

fn rules(held: &Held) -> Value {
    let of = |paths: bool| {
        let rules = held.rules.iter().filter(|it| it.paths.is_empty() != paths);
        rules.map(Rule::to_json).collect::<Vec<_>>()
    };
    let incomplete = !held.problems.is_empty();
    let mut status = json!({
        "resourceRules": of(false),
        "nonResourceRules": of(true),
        "incomplete": incomplete,
    });
    if incomplete {
        object::put(&mut status, "evaluationError", Some(listed(&held.problems).into()));
    }
    status
}

/// Returns the answer for a token of ours; others keep the answer of those that nobody knows.
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
