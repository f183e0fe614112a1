//! The part of the cluster that an operator serves.

use serde_json::{Value, json};

use super::namespace::{Namespace, OBJECT};
use super::operator::{Operator, file, kopf, ours};
use super::until;

#[tokio::test]
async fn without_a_scope_the_whole_cluster_is_served_with_a_warning() {
    let Some(namespace) = Namespace::for_test("scope-unsaid").await else { return };
    let script = file("tests/e2e/wide.lua");
    let operator =
        Operator::start(kopf(&namespace.kubeconfig(), &["--standalone", "--verbose"]).arg(script));
    operator.until_says("serving the whole cluster").await;
    namespace
        .create(&json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfWide", "metadata": {"name": "wide"}
        }))
        .await;
    // Without a namespace, the prefix contains only the name.
    operator.until_says("[wide] Creation is processed: 1 succeeded; 0 failed.").await;
    // Without a status subresource, the result is stored in the status, too.
    until("the result is stored", async || {
        let text = namespace.try_kubectl(&["get", "kopfwide", "wide", "-o", "json"], "").await?;
        let object: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        if object["status"]["wide_fn"] == json!({"served": true}) { Ok(()) } else { Err(text) }
    })
    .await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn objects_of_other_namespaces_are_left_alone() {
    let Some(mine) = Namespace::for_test("scope-mine").await else { return };
    let Some(other) = Namespace::for_test("scope-other").await else { return };
    let operator = ours(&mine, &file("examples/01-minimal/handlers.lua"));
    other.apply_object().await;
    mine.apply_object().await;
    operator.until_says(&format!("[{}/{OBJECT}] Creation is processed", mine.name)).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count(&format!("[{}/", other.name), 0);
}

#[tokio::test]
async fn a_pattern_serves_every_namespace_that_matches() {
    let Some(first) = Namespace::for_test("scope-many-1").await else { return };
    let Some(second) = Namespace::for_test("scope-many-2").await else { return };
    let Some(other) = Namespace::for_test("scope-many-not").await else { return };
    let script = file("examples/01-minimal/handlers.rhai");
    let arguments = ["--standalone", "-v", "-n", "scope-many-*, !*-not"];
    let operator = Operator::start(kopf(&first.kubeconfig(), &arguments).arg(script));
    for namespace in [&other, &first, &second] {
        namespace.apply_object().await;
    }
    for name in ["scope-many-1", "scope-many-2"] {
        operator.until_says(&format!("[{name}/{OBJECT}] Creation is processed")).await;
    }
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("[scope-many-not/", 0);
}

#[tokio::test]
async fn a_namespace_that_appears_later_is_served_when_it_matches() {
    let Some(first) = Namespace::for_test("scope-late-1").await else { return };
    let script = file("examples/01-minimal/handlers.rhai");
    let operator = Operator::start(
        kopf(&first.kubeconfig(), &["--standalone", "-v", "-n", "scope-late-*"]).arg(script),
    );
    first.apply_object().await;
    operator.until_says(&format!("[scope-late-1/{OBJECT}] Creation is processed")).await;
    let Some(second) = Namespace::for_test("scope-late-2").await else { return };
    second.apply_object().await;
    operator.until_says(&format!("[scope-late-2/{OBJECT}] Creation is processed")).await;
    operator.stop().await.assert_code(0);
}
