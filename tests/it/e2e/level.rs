//! Each guarantee about reconcile handlers, schedules and locks, on a real API server and with `kopf test`.

use serde_json::{Value, json};
use tokio::process::Command;

use super::namespace::Namespace;
use super::operator::{Operator, file, kopf};

/// Waits until scripts have reported these names, each by a `ConfigMap` of this name.
async fn until_told(namespace: &Namespace, told: &[&str]) {
    for name in told {
        let shown = format!("configmap/{name}");
        namespace.until_prints(&["get", "configmap", name, "-o", "name"], &shown).await;
    }
}

async fn edit(namespace: &Namespace, spec: &Value) {
    let patch = json!({ "spec": spec }).to_string();
    namespace.kubectl(&["patch", "kopfexamples", "one", "--type=merge", "-p", &patch]).await;
}

async fn until_status(namespace: &Namespace, field: &str, expected: &str) {
    let path = format!("jsonpath={{.status.{field}}}");
    namespace.until_prints(&["get", "kopfexamples", "one", "-o", &path], expected).await;
}

const CHILDREN: &[&str] = &["get", "configmaps,services", "-l", "kopf.dev/parent", "-o", "name"];
const BOTH: &str = "configmap/first\nservice/second";

async fn play(test: &str, language: &str) {
    let Some(namespace) = Namespace::for_test(test).await else { return };
    let place = ["--standalone", "--verbose", "-n", &namespace.name, "--lease", &namespace.name];
    let script = |name: &str| file(&format!("tests/e2e/level/{name}.{language}"));
    let mut command = kopf(&namespace.kubeconfig(), &place);
    let operator = Operator::start(command.args([script("handlers"), script("others")]));
    let spec = json!({ "value": "1", "schedule": "* * * * *" });
    namespace
        .create(&json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": { "name": "one" }, "spec": spec,
        }))
        .await;
    until_status(&namespace, "value", "1").await;
    namespace.until_prints(CHILDREN, BOTH).await;
    until_status(&namespace, "conditions[0].reason", "Seen").await;
    until_told(&namespace, &["parent-of-first-is-one", "owner-of-second-is-one"]).await;
    until_told(&namespace, &["lock-result", "holder-is-named", "lock-of-an-object"]).await;

    let drift = ["patch", "configmap", "first", "--type=merge", "-p", r#"{"data":{"value":"2"}}"#];
    namespace.kubectl(&drift).await;
    let value = ["get", "configmap", "first", "-o", "jsonpath={.data.value}"];
    namespace.until_prints(&value, "1").await;
    let metadata = json!({ "name": "secret", "labels": { "parent": "one" } });
    namespace.create(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata })).await;
    until_status(&namespace, "secret", "true").await;
    until_status(&namespace, "calls", "3").await;

    edit(&namespace, &json!({ "mode": "requeue" })).await;
    until_status(&namespace, "count", "3").await;
    for (mode, told) in [("nil", "called-for-nil"), ("fail", "called-for-fail")] {
        edit(&namespace, &json!({ "mode": mode })).await;
        until_told(&namespace, &[told]).await;
        assert_eq!(namespace.kubectl(CHILDREN).await.trim(), BOTH, "{mode}");
    }
    edit(&namespace, &json!({ "mode": "prune" })).await;
    namespace.until_prints(CHILDREN, "").await;
    edit(&namespace, &json!({ "mode": "retry" })).await;
    namespace.until_prints(CHILDREN, BOTH).await;

    until_told(&namespace, &["often", "minute-00", "timer", "timer-of-its-own"]).await;
    let all = namespace.kubectl(&["get", "configmaps", "-o", "name"]).await;
    assert_eq!(all.matches("/sharp-").count(), 1, "all slots of one fraction: {all}");
    namespace.kubectl(&["delete", "kopfexamples", "one", "--timeout=180s"]).await;
    until_told(&namespace, &["finalized"]).await;
    operator.stop().await.assert_code(0);
}

/// Runs the same steps with `kopf test`, which needs no server.
async fn test(language: &str) {
    let script = |name: &str| file(&format!("tests/e2e/level/{name}.{language}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.arg("test").arg(script("tests/level_test")).arg("--crd").arg(file("examples/crd.yaml"));
    command.arg("--operator").arg(script("handlers")).arg("--operator").arg(script("others"));
    let ended = command.output().await.expect("kopf test starts");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && printed.contains("6 tests, all passed"), "{printed}");
}

#[tokio::test]
async fn each_line_is_true_in_lua() {
    test("lua").await;
    play("level-lua", "lua").await;
}

#[tokio::test]
async fn each_line_is_true_in_rhai() {
    test("rhai").await;
    play("level-rhai", "rhai").await;
}
