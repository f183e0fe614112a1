//! Handlers that fail, as users see them on a real server: `kubectl describe`, `kopf retry`, the rate of events, the log.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{process::Command, time::Instant};

use super::{
    namespace::{Namespace, OBJECT},
    operator::{Operator, file, kopf},
    until,
};

/// The number of objects that fail every second.
const CROWD: usize = 200;

fn start(namespace: &Namespace, script: &str) -> Operator {
    let mut command = kopf(&namespace.kubeconfig(), &["--standalone", "-n"]);
    Operator::start(command.arg(&namespace.name).arg(file(script)))
}

async fn verb(namespace: &Namespace, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", namespace.kubeconfig()).args(args);
    let output = command.args(["-n", &namespace.name]).output().await.expect("kopf runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn a_failed_object_is_described_and_retried(test: &str, script: &str) {
    let Some(namespace) = Namespace::for_test(test).await else { return };
    let operator = start(&namespace, script);
    namespace.apply_object().await;
    until("the failure is described", async || {
        let text = namespace.kubectl(&["describe", "kopfexample", OBJECT]).await;
        let wanted =
            ["Warning", "HandlerGaveUp", "'made' failed permanently (attempt 1): not fixed"];
        if wanted.iter().all(|it| text.contains(it)) { Ok(()) } else { Err(text) }
    })
    .await;
    until("the failure is recorded", async || {
        let text = verb(&namespace, &["status", "kopfexamples"]).await;
        if text.contains("made") && text.contains("1 failed") { Ok(()) } else { Err(text) }
    })
    .await;
    namespace.kubectl(&["label", "kopfexample", OBJECT, "fixed=yes"]).await;
    let target = format!("kopfexample/{OBJECT}");
    assert!(verb(&namespace, &["retry", &target]).await.contains("retried: made"));
    operator.until_says("Handler 'made' succeeded").await;
    until("nothing has failed any more", async || {
        let text = verb(&namespace, &["status", "kopfexamples"]).await;
        if text.contains("0 failed") { Ok(()) } else { Err(text) }
    })
    .await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn a_failed_object_is_described_and_retried_with_lua() {
    a_failed_object_is_described_and_retried("failures-lua", "tests/e2e/failures.lua").await;
}

#[tokio::test]
async fn a_failed_object_is_described_and_retried_with_rhai() {
    a_failed_object_is_described_and_retried("failures-rhai", "tests/e2e/failures.rhai").await;
}

#[tokio::test]
async fn many_failing_objects_flood_neither_the_server_nor_the_log() {
    let Some(namespace) = Namespace::for_test("failures-crowd").await else { return };
    let object = |number: usize| {
        json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": { "name": format!("crowd-{number}"), "labels": { "crowd": "yes" } },
        })
    };
    let items: Vec<_> = (0..CROWD).map(object).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    namespace.create(&list).await;
    let begun = Instant::now();
    let operator = start(&namespace, "tests/e2e/failures.lua");
    let count = async || {
        let text = namespace.try_kubectl(&["get", "events", "-o", "json"], "").await?;
        let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        let events = list["items"].as_array().into_iter().flatten();
        Ok::<_, String>(events.filter(|it| it["reason"] == "HandlerFailed").count())
    };
    until("each object has its event", async || {
        let events = count().await?;
        if events >= CROWD { Ok(()) } else { Err(format!("{events} events")) }
    })
    .await;
    let took = begun.elapsed();
    let least = Duration::from_millis(50).saturating_mul(u32::try_from(CROWD - 1).expect("few"));
    assert!(took >= least, "{CROWD} events in {took:?}: more than 20 per second");
    let lines = operator.output().lines().filter(|it| it.contains("not in a crowd")).count();
    let windows = usize::try_from(took.as_secs() / 30 + 1).expect("few");
    assert!(lines <= windows * 6, "{lines} lines in {took:?}");
    assert_eq!(count().await, Ok(CROWD), "one per object");
    operator.stop().await.assert_code(0);
}
