//! Users and their permissions as kubectl shows them. Exchanges compare the refusals themselves with the real server.

use kopf_apiserver::streaming::PodStreams;
use serde_json::json;

use crate::streams::{Kubectl, served};

const GROUP: &str = "rbac.authorization.k8s.io";

#[tokio::test]
async fn kubectl_knows_users_their_permissions_and_their_tokens() {
    let served = served(PodStreams::default(), true).await;
    let Some(kubectl) = Kubectl::find(&served, "permissions").await else { return };
    let account = json!({ "metadata": { "namespace": "default", "name": "op" } });
    served.server.create("serviceaccounts", account).expect("an account");
    let role = "--as=system:serviceaccount:default:op";
    let (code, out, _) = kubectl
        .run(&["auth", "whoami", role, "-o", "jsonpath={.status.userInfo.username}"], "")
        .await;
    assert_eq!((code, out.as_str()), (Some(0), "system:serviceaccount:default:op"));

    let can = async |verb: &str, what: &str| {
        let (code, out, err) = kubectl.run(&["auth", "can-i", verb, what, role], "").await;
        assert!(
            matches!((code, out.as_str()), (Some(0), "yes\n") | (Some(1), "no\n")),
            "{out}{err}"
        );
        code == Some(0)
    };
    assert!(!can("list", "pods").await);
    for args in [
        &["create", "role", "reader", "--verb=list", "--resource=pods"][..],
        &["create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:op"],
    ] {
        let (code, _, err) = kubectl.run(args, "").await;
        assert_eq!(code, Some(0), "{err}");
    }
    assert!(can("list", "pods").await);
    assert!(!can("watch", "pods").await);
    let (code, out, err) = kubectl.run(&["get", "secrets", role], "").await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(
        err,
        "Error from server (Forbidden): secrets is forbidden: User \"system:serviceaccount:default:op\" cannot list \
         resource \"secrets\" in API group \"\" in the namespace \"default\"\n"
    );
    let (code, out, err) = kubectl.run(&["auth", "can-i", "--list", role], "").await;
    assert_eq!(code, Some(0), "{err}");
    let row = out.lines().find(|it| it.starts_with("pods "));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words, ["pods", "[]", "[]", "[list]"], "{out}");
    let (code, out, err) = kubectl.run(&["create", "token", "op", "--duration=20m"], "").await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.trim().split('.').count(), 3, "a JSON web token");
}

/// Returns a server with these objects of RBAC.
async fn edited(service: &[(&str, serde_json::Value)]) -> crate::streams::PodServer {
    let served = served(PodStreams::default(), true).await;
    for (plural, object) in service {
        served.server.create(&format!("{plural}.{GROUP}"), object.clone()).expect("a new object");
    }
    served
}

#[tokio::test]
async fn the_default_roles_exist_and_include_those_that_aggregate_into_them() {
    let binding = json!({
        "metadata": { "namespace": "default", "name": "b" },
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "kind": "User", "name": "bob" }],
    });
    let served = edited(&[("rolebindings", binding)]).await;
    let bob =
        kube::Client::new(served.server.client_of(kopf_apiserver::User::named("bob")), "default");
    let status = async |path: &str| crate::send(&bob, "GET", path, ("", String::new())).await.0;
    assert_eq!(status("/api/v1/namespaces/default/pods/p").await, 200);
    assert_eq!(status("/api/v1/namespaces/default/secrets").await, 403);
    assert_eq!(status("/api/v1/namespaces/kube-system/pods").await, 403);
    let more = json!({
        "metadata": { "name": "more", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["list"] }],
    });
    served.server.create(&format!("clusterroles.{GROUP}"), more).expect("a role");
    assert_eq!(status("/api/v1/namespaces/default/secrets").await, 200);
    served.server.delete(&format!("clusterroles.{GROUP}"), "", "more").expect("a role");
    assert_eq!(status("/api/v1/namespaces/default/secrets").await, 403);
}
