//! The examples with separate tests, run by these.

use std::{path::Path, process::Command};

fn passes(example: &str, language: &str, tests: usize) {
    let place = format!("examples/{example}");
    let own = format!("{place}/crd.yaml");
    let has_own = Path::new(env!("CARGO_MANIFEST_DIR")).join(&own).exists();
    let crd = if has_own { &own } else { "examples/crd.yaml" };
    let output = Command::new(env!("CARGO_BIN_EXE_kopf"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .args(["test", "--crd", crd])
        .args(["--operator", &format!("{place}/handlers.{language}")])
        .arg(format!("{place}/tests/handlers_test.{language}"))
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("{tests} tests, all passed")), "{text}");
}

#[test]
fn admission_in_lua() {
    passes("17-admission", "lua", 4);
}

#[test]
fn admission_in_rhai() {
    passes("17-admission", "rhai", 4);
}

#[test]
fn policy_in_lua() {
    passes("policy", "lua", 3);
}

#[test]
fn policy_in_rhai() {
    passes("policy", "rhai", 3);
}

#[test]
fn conversion_in_lua() {
    passes("conversion", "lua", 2);
}

#[test]
fn conversion_in_rhai() {
    passes("conversion", "rhai", 2);
}

#[test]
fn conversions_of_the_example_lose_nothing() {
    for language in ["lua", "rhai"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kopf"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .args(["check", &format!("examples/conversion/handlers.{language}")])
            .output()
            .expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.is_empty(), "{text}");
    }
}

#[test]
fn schedules_in_lua() {
    passes("schedules", "lua", 3);
}

#[test]
fn schedules_in_rhai() {
    passes("schedules", "rhai", 3);
}

#[test]
fn appliances_in_lua() {
    passes("ports/appliances", "lua", 3);
}

#[test]
fn appliances_in_rhai() {
    passes("ports/appliances", "rhai", 3);
}

#[test]
fn keystores_in_lua() {
    passes("ports/keystores", "lua", 2);
}

#[test]
fn keystores_in_rhai() {
    passes("ports/keystores", "rhai", 2);
}

#[test]
fn setup_in_lua() {
    passes("ports/setup", "lua", 2);
}

#[test]
fn setup_in_rhai() {
    passes("ports/setup", "rhai", 2);
}
