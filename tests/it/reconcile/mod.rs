//! `kopf.reconcile`: the examples with their tests, and the behavior of handlers beyond the scenario `reconcile`.

use std::process::Command;

/// Runs a test script of a folder against an operator of it, in one language.
fn passes(place: &str, operator: &str, tests: usize) {
    let crd = format!("{place}/crd.yaml");
    let (name, language) = operator.split_once('.').expect("an extension");
    let output = Command::new(env!("CARGO_BIN_EXE_kopf"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .args(["test", "--crd", &crd])
        .args(["--operator", &format!("{place}/{operator}")])
        .arg(format!("{place}/tests/{name}_test.{language}"))
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("{tests} tests, all passed")), "{text}");
}

#[test]
fn catset_in_lua() {
    passes("examples/reconcile", "catset.lua", 4);
}

#[test]
fn catset_in_rhai() {
    passes("examples/reconcile", "catset.rhai", 4);
}

#[test]
fn indexed_job_in_lua() {
    passes("examples/reconcile", "indexed-job.lua", 3);
}

#[test]
fn indexed_job_in_rhai() {
    passes("examples/reconcile", "indexed-job.rhai", 3);
}

#[test]
fn blue_green_in_lua() {
    passes("examples/reconcile", "blue-green.lua", 3);
}

#[test]
fn blue_green_in_rhai() {
    passes("examples/reconcile", "blue-green.rhai", 3);
}

#[test]
fn service_per_pod_in_lua() {
    passes("examples/reconcile", "service-per-pod.lua", 3);
}

#[test]
fn service_per_pod_in_rhai() {
    passes("examples/reconcile", "service-per-pod.rhai", 3);
}

#[test]
fn clustered_parent_in_lua() {
    passes("examples/reconcile", "clustered-parent.lua", 3);
}

#[test]
fn clustered_parent_in_rhai() {
    passes("examples/reconcile", "clustered-parent.rhai", 3);
}

#[test]
fn behavior_in_lua() {
    passes("tests/reconcile", "web.lua", 10);
}

#[test]
fn behavior_in_rhai() {
    passes("tests/reconcile", "web.rhai", 10);
}
