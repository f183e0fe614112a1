//! The ports of operators that render templates, with their tests.

use std::process::Command;

/// Runs the tests of a port in both languages.
fn passes(name: &str, tests: usize) {
    let place = format!("examples/ports/{name}");
    for language in ["lua", "rhai"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kopf"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .args(["test", "--crd", &format!("{place}/crd.yaml")])
            .args(["--operator", &format!("{place}/handlers.{language}")])
            .arg(format!("{place}/tests/handlers_test.{language}"))
            .output()
            .expect("the binary runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(&format!("{tests} tests, all passed")), "{text}");
    }
}

#[test]
fn user_namespaces() {
    passes("user-namespaces", 3);
}

#[test]
fn memcached() {
    passes("memcached", 2);
}
