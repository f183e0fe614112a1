//! The state on the cluster is Kopf's: Python's Kopf continues where this operator stopped, and the other way round.

use serde_json::{Value, json};
use tokio::process::Command;

use super::namespace::{Namespace, OBJECT, is_settled, record};
use super::operator::{Operator, file, ours};
use super::server::variable;
use crate::vectors::say;

/// The operator that runs.
#[derive(Clone, Copy)]
enum Which {
    Ours(&'static str),
    Python,
}

impl Which {
    /// Starts it with one of the scripts of `tests/e2e/interchange/`.
    fn start(self, namespace: &Namespace, python: &str, script: &str) -> Operator {
        match self {
            Which::Ours(language) => {
                ours(namespace, &file(&format!("tests/e2e/interchange/{script}.{language}")))
            }
            Which::Python => Operator::start(
                Command::new(python)
                    .env("KUBECONFIG", namespace.kubeconfig())
                    .args(["-m", "kopf", "run", "--standalone", "--verbose", "-n"])
                    .arg(&namespace.name)
                    .arg(file(&format!("tests/e2e/interchange/{script}.py"))),
            ),
        }
    }
}

/// Returns a namespace and a Python with Kopf; prints a line and returns `None` if there is none.
async fn prepare(test: &str) -> Option<(Namespace, String)> {
    let Some(python) = variable("KOPF_PYTHON") else {
        say(&format!("e2e {test}: skipped, KOPF_PYTHON is no Python with Kopf"));
        return None;
    };
    Some((Namespace::for_test(test).await?, python))
}

#[tokio::test]
async fn lua_carries_on_where_python_stopped() {
    carries_on("python-to-lua", Which::Python, Which::Ours("lua")).await;
}

#[tokio::test]
async fn rhai_carries_on_where_python_stopped() {
    carries_on("python-to-rhai", Which::Python, Which::Ours("rhai")).await;
}

#[tokio::test]
async fn python_carries_on_where_lua_stopped() {
    carries_on("lua-to-python", Which::Ours("lua"), Which::Python).await;
}

#[tokio::test]
async fn python_carries_on_where_rhai_stopped() {
    carries_on("rhai-to-python", Which::Ours("rhai"), Which::Python).await;
}

/// Checks a handover: `begin` finishes the first of two handlers and keeps retrying the second; `carry_on` lets both succeed.
async fn carries_on(test: &str, before: Which, after: Which) {
    let Some((namespace, python)) = prepare(test).await else { return };
    let operator = before.start(&namespace, &python, "begin");
    namespace.apply_object().await;
    let object = namespace
        .until_object(OBJECT, "the second handler has been retried", |it| {
            let retries = |it: Value| it["retries"].as_u64().unwrap_or_default();
            record(it, "second_fn").map_or(0, retries) >= 2
        })
        .await;
    assert_eq!(record(&object, "first_fn").expect("a record")["success"], json!(true));
    operator.stop().await.assert_code(0);

    let operator = after.start(&namespace, &python, "carry_on");
    // The status is patched after the object itself.
    let results = json!({"first_fn": {"by": "begin"}, "second_fn": {"by": "carry_on"}});
    let is_complete = |it: &Value| is_settled(it) && it["status"] == results;
    namespace.until_object(OBJECT, "everything is handled", is_complete).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Handler 'first_fn' is invoked", 0);
    ended.assert_count("Handler 'second_fn' is invoked", 1);
    ended.assert_count("the first attempt", 0);
    ended.assert_count("Creation is processed: 2 succeeded; 0 failed.", 1);

    // Objects that one operator has finished are not new for the other, and each respects the finalizer of the other.
    let operator = before.start(&namespace, &python, "resume");
    operator.until_says("Resuming is processed: 1 succeeded; 0 failed.").await;
    operator.stop().await.assert_code(0);
    let operator = after.start(&namespace, &python, "resume");
    operator.until_says("Resuming is processed: 1 succeeded; 0 failed.").await;
    namespace.delete_object().await;
    namespace.until_gone().await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Handler 'delete_fn' succeeded", 1);
}
