//! `kopf plan` on a real API server, while the operator runs; and what `ctx.dry` is elsewhere.

use std::{path::Path, process::Output};

use serde_json::json;
use tokio::process::Command;

use super::{
    namespace::Namespace,
    operator::{Operator, file, kopf},
};

const VERSIONS: &[&str] = &[
    "get",
    "configmaps,kopfexamples,events",
    "-o",
    "jsonpath={.items[*].metadata.resourceVersion}",
];

async fn plan(namespace: &Namespace, script: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", namespace.kubeconfig()).arg("plan").arg(script);
    let planned = command.args(["-n", &namespace.name]).args(more).output().await;
    planned.expect("kopf runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn plans_and_changes_nothing(language: &str) {
    let Some(namespace) = Namespace::for_test(&format!("plan-{language}")).await else { return };
    let script = file(&format!("tests/e2e/plan/handlers.{language}"));
    let mut command = kopf(&namespace.kubeconfig(), &["--standalone", "--verbose", "-n"]);
    let operator = Operator::start(command.arg(&namespace.name).arg(&script));
    namespace
        .create(&json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": { "name": "one" },
            "spec": { "children": ["a", "b"], "value": "1" },
        }))
        .await;
    let children = ["get", "kopfexamples", "one", "-o", "jsonpath={.status.children}"];
    namespace.until_prints(&children, "2").await;
    let before = namespace.kubectl(VERSIONS).await;

    let edited = std::env::temp_dir().join(format!("{}.{language}", namespace.name));
    let old = std::fs::read_to_string(&script).expect("the script");
    let new =
        old.replace("ctx.spec.value", "\"2\"").replace("ctx.spec.children", "ctx.labels.names");
    std::fs::write(&edited, new).expect("a file");
    let planned = plan(&namespace, &edited, &[]).await;
    assert_eq!(planned.status.code(), Some(1), "{planned:?}");
    let out = text(&planned.stdout);
    assert!(out.starts_with("No changes.\n"), "an error prunes no children: {out}");
    assert!(text(&planned.stderr).contains("Reconciler 'maps' failed"), "{planned:?}");

    let new = old.replace("ctx.spec.value", "\"2\"").replace("ctx.spec.children", "[\"b\", \"c\"]");
    let new =
        if language == "lua" { new.replace("[\"b\", \"c\"]", "{ \"b\", \"c\" }") } else { new };
    std::fs::write(&edited, new).expect("a file");
    let planned = plan(&namespace, &edited, &[]).await;
    std::fs::remove_file(&edited).expect("the file is there");
    let place = &namespace.name;
    let expected = format!(
        "- delete configmaps/one-a -n {place}\n\
         ~ update configmaps/one-b -n {place}\n    data.dry: \"false\" -> \"true\"\n    data.value: \"1\" -> \"2\"\n\
         + create configmaps/one-c -n {place}\n    data.dry: \"true\"\n    data.value: \"2\"\n    \
         metadata.ownerReferences: [\"KopfExample/one\"]\n\n\
         Plan: 1 to create, 1 to update, 1 to delete.\n"
    );
    assert_eq!((text(&planned.stdout), text(&planned.stderr)), (expected, String::new()));
    assert_eq!(planned.status.code(), Some(0));
    assert_eq!(namespace.kubectl(VERSIONS).await, before, "the cluster has not changed");
    operator.stop().await.assert_code(0);

    let nobody = ["--as", "system:serviceaccount:default:nobody"];
    let refused = plan(&namespace, &script, &nobody).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("nobody"), "it says who may not read: {refused:?}");
}

#[tokio::test]
async fn a_plan_shows_and_changes_nothing_for_lua() {
    plans_and_changes_nothing("lua").await;
}

#[tokio::test]
async fn a_plan_shows_and_changes_nothing_for_rhai() {
    plans_and_changes_nothing("rhai").await;
}

#[tokio::test]
async fn a_test_is_no_plan() {
    for language in ["lua", "rhai"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
        command
            .env_clear()
            .arg("test")
            .arg(file(&format!("tests/e2e/plan/{language}_test.{language}")));
        command.arg("--operator").arg(file(&format!("tests/e2e/plan/handlers.{language}")));
        let tested = command.output().await.expect("kopf runs");
        assert!(text(&tested.stdout).ends_with("1 test, all passed\n"), "{tested:?}");
    }
}
