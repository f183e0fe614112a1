//! Errors for users.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::cluster::failure::{Action, ErrorResponse, RequestFailure};
use crate::logic::object::resource::Resource;

fn check(failure: RequestFailure, namespace: Option<&str>, expected: &Expect) {
    let resource = Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "kopfexamples".into(),
        ..Resource::default()
    };
    let action = Action::Use {
        verb: "patch",
        resource: &resource,
        namespace,
        name: Some("one"),
        subresource: Some("status"),
    };
    let error = failure.into_error(&action, "https://there:6443");
    expected.assert_eq(&format!("{error}\nhint: {}", error.hint.as_deref().unwrap_or_default()));
}

#[test]
fn a_denial_names_the_rule_that_is_missing() {
    let body = json!({"kind": "Status", "message": "no\n  way"}).to_string();
    let denial = RequestFailure::Answer(ErrorResponse::read(403, None, body.as_bytes()));
    check(
        denial,
        Some("ns1"),
        &expect![[r#"
        cannot patch kopfexamples.v1.kopf.dev/status 'one' in 'ns1': 403 Forbidden: no way
        hint: grant it to the operator in a ClusterRole, or in a Role in the namespace 'ns1': {apiGroups: ["kopf.dev"], resources: ["kopfexamples/status"], verbs: ["patch"]}"#]],
    );
}

#[test]
fn permissions_are_named_only_if_they_would_help() {
    let resource = Resource { version: "v1".into(), plural: "pods".into(), ..Resource::default() };
    let (namespace, name) = (Some("ns1"), Some("one"));
    let hint = |verb, why: &str| {
        let action = Action::Use { verb, resource: &resource, namespace, name, subresource: None };
        let message = format!("pods \"one\" is forbidden: {why}");
        let body = json!({"kind": "Status", "message": message}).to_string();
        let failure = RequestFailure::Answer(ErrorResponse::read(403, None, body.as_bytes()));
        failure.into_error(&action, "https://there:6443").hint.unwrap_or_default()
    };
    let verbs = |text: String| text.split_once("verbs: ").map(|(_, it)| it.to_owned());
    let lacks = |verb: &str| Some(format!("[\"{verb}\"]}}"));
    assert_eq!(verbs(hint("get", "User \"a\" cannot get resource \"pods\"")), lacks("get"));
    assert_eq!(verbs(hint("patch", "User \"a\" cannot patch resource \"pods\"")), lacks("patch"));
    // The message of newer servers for an apply that would have to create.
    let creates =
        "User \"a\" cannot create resource \"pods\" in API group \"\" in the namespace \"ns1\"";
    assert_eq!(verbs(hint("patch", creates)), lacks("create"));
    let other = "User \"a\" cannot update resource \"pods/binding\" in API group \"other.dev\"";
    assert!(hint("create", other).ends_with(
        "{apiGroups: [\"other.dev\"], resources: [\"pods/binding\"], verbs: [\"update\"]}"
    ));
    // The message of older ones.
    assert_eq!(verbs(hint("patch", "")), lacks("create"));
    assert_eq!(verbs(hint("patch", "RBAC: role \"other\" not found")), lacks("create"));
    assert_eq!(hint("create", "exceeded quota: few, requested: pods=1, used: pods=3"), "");
    assert_eq!(hint("create", "violates PodSecurity \"restricted:latest\""), "");
}

#[test]
fn an_unreachable_server_is_named() {
    let failure = RequestFailure::Unreachable("Connection refused (os error 111)".into());
    check(
        failure,
        None,
        &expect![[r"
        cannot patch kopfexamples.v1.kopf.dev/status 'one' at https://there:6443: Connection refused (os error 111)
        hint: check that the cluster is running and that the `server` of the current context is correct: `kubectl version`"]],
    );
}

#[test]
fn foreign_texts_are_cut_and_foreign_json_is_dropped() {
    let message = |body: &str| ErrorResponse::read(500, None, body.as_bytes()).message;
    assert_eq!(message(" gone\nwrong "), "gone wrong");
    assert_eq!(message(&"x".repeat(300)).len(), 256);
    assert_eq!(message(r#"{"kind": "Other", "message": "m"}"#), "");
    assert_eq!(message(r#"["list"]"#), "");
    assert_eq!(message(r#"{"kind": "Status", "reason": "Why"}"#), "Why");
}
