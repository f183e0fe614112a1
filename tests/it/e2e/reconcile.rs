//! `kopf.reconcile` on a real API server: creation, drift, pruning, a restart, and the deletion.

use serde_json::{Value, json};

use super::namespace::Namespace;
use super::operator::{Operator, file, ours};

fn start(namespace: &Namespace) -> Operator {
    ours(namespace, &file("tests/e2e/reconcile.lua"))
}

const NAMES: &[&str] =
    &["get", "configmaps", "-l", "kopf.dev/parent", "-o", "jsonpath={.items[*].metadata.name}"];

async fn edit(namespace: &Namespace, spec: &Value) {
    let patch = json!({ "spec": spec }).to_string();
    namespace.kubectl(&["patch", "kopfexamples", "one", "--type=merge", "-p", &patch]).await;
}

#[tokio::test]
async fn children_are_created_repaired_pruned_and_kept_over_a_restart() {
    let Some(namespace) = Namespace::for_test("reconcile").await else { return };
    let operator = start(&namespace);
    namespace
        .create(&json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": { "name": "one" },
            "spec": { "children": ["a", "b"], "value": "1" },
        }))
        .await;
    namespace.until_prints(NAMES, "one-a one-b").await;
    let value = ["get", "configmap", "one-a", "-o", "jsonpath={.data.value}"];
    namespace.until_prints(&value, "1").await;

    namespace
        .kubectl(&[
            "patch",
            "configmap",
            "one-a",
            "--type=merge",
            "-p",
            r#"{"data":{"value":"drifted"}}"#,
        ])
        .await;
    namespace.until_prints(&value, "1").await;
    namespace.kubectl(&["delete", "configmap", "one-b"]).await;
    namespace.until_prints(NAMES, "one-a one-b").await;
    edit(&namespace, &json!({ "children": ["b"], "value": "2" })).await;
    namespace.until_prints(NAMES, "one-b").await;
    let children = ["get", "kopfexamples", "one", "-o", "jsonpath={.status.children}"];
    namespace.until_prints(&children, "1").await;
    operator.stop().await.assert_code(0);

    let versions = [
        "get",
        "configmaps,deployments",
        "-l",
        "kopf.dev/parent",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ];
    let before = namespace.kubectl(&versions).await;
    let operator = start(&namespace);
    edit(&namespace, &json!({ "children": ["b", "c"] })).await;
    namespace.until_prints(NAMES, "one-b one-c").await;
    let of_b = [
        "get",
        "configmap/one-b",
        "deployment/one",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ];
    namespace.until_prints(&children, "2").await;
    assert_eq!(namespace.kubectl(&of_b).await.trim(), before.trim(), "nothing is written again");

    namespace.kubectl(&["delete", "kopfexamples", "one", "--timeout=180s"]).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Finalized", 1);
}
