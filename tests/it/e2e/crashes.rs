//! `kill -9` at every step of the handling, and a restart: handlers that are recorded as finished stay finished, the others run.
//!
//! The first run is complete: it determines the lines of the log at which a run can be interrupted. Then the run is repeated with a new
//! object and a kill after the first of these lines, after the second, and so on. The API calls are between the log lines.
//!
//! As in Kopf, the *results* of the last cycle are not guaranteed. They are patched into the status after the object itself, and a crash
//! between the two requests loses them.

use serde_json::{Value, json};

use super::namespace::{Namespace, is_settled, record};
use super::operator::{Operator, file, ours};
use super::until;

/// The creation handlers of `tests/e2e/crash.lua`.
const HANDLERS: [&str; 3] = ["one", "two", "three"];

/// The last line of a creation, and of a deletion.
const CREATED: &str = "Creation is processed";
const DELETED: &str = "Deleted, really deleted";

/// Maximum number of steps of a full run: a run that never ends must be detected.
const STEPS_MAX: usize = 60;

fn start(namespace: &Namespace) -> Operator {
    ours(namespace, &file("tests/e2e/crash.lua"))
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": name}, "spec": {"field": "value"},
    })
}

/// Returns the prefix of log lines about an object: each of them is a step.
fn prefix(namespace: &Namespace, name: &str) -> String {
    format!("[{}/{name}] ", namespace.name)
}

#[tokio::test]
async fn a_crash_during_the_creation_repeats_only_what_is_not_recorded() {
    let Some(namespace) = Namespace::for_test("crash-creation").await else { return };
    let operator = start(&namespace);
    namespace.create(&object("full")).await;
    namespace.until_object("full", "the creation is complete", is_settled).await;
    let ended = operator.stop().await;
    let prefix_of_full = prefix(&namespace, "full");
    let of_full = ended.output.lines().filter(|it| it.contains(&prefix_of_full));
    let steps = 1 + of_full.take_while(|it| !it.contains(CREATED)).count();
    assert!((HANDLERS.len()..STEPS_MAX).contains(&steps), "{steps} steps:\n{}", ended.output);

    for step in 1..=steps {
        let name = format!("after-{step}");
        let operator = start(&namespace);
        namespace.create(&object(&name)).await;
        operator.until_lines(&prefix(&namespace, &name), step, CREATED).await;
        let crashed = operator.crash().await;
        let left = namespace.object(&name).await.expect("the object");

        let operator = start(&namespace);
        namespace.until_object(&name, "the creation is complete", is_settled).await;
        // A second object shows that the operator has processed all objects that existed at its start.
        let fence = format!("fence-{step}");
        namespace.create(&object(&fence)).await;
        namespace.until_object(&fence, "the fence is complete", is_settled).await;
        let restarted = operator.stop().await;
        restarted.assert_code(0);

        let told = || {
            let (before, after) = (&crashed.output, &restarted.output);
            format!("step {step}\n{left:#}\n--- before the crash\n{before}\n--- after\n{after}")
        };
        for handler in HANDLERS {
            let line = format!("[{}/{name}] Handler '{handler}' is invoked", namespace.name);
            let success = record(&left, handler).is_some_and(|it| it["success"] == json!(true));
            let finished = success || is_settled(&left);
            let invoked = restarted.count(&line);
            assert_eq!(invoked == 0, finished, "{handler} ran {invoked} times: {}", told());
        }
    }
}

#[tokio::test]
async fn a_crash_during_the_deletion_leaves_no_object_behind() {
    let Some(namespace) = Namespace::for_test("crash-deletion").await else { return };
    for step in 1..STEPS_MAX {
        let name = format!("after-{step}");
        let operator = start(&namespace);
        namespace.create(&object(&name)).await;
        namespace.until_object(&name, "the creation is complete", is_settled).await;
        operator.stop().await.assert_code(0);

        namespace.kubectl(&["delete", "kopfexample", &name, "--wait=false"]).await;
        let operator = start(&namespace);
        operator.until_lines(&prefix(&namespace, &name), step, DELETED).await;
        let last = operator.output().contains(DELETED);
        operator.crash().await;

        let operator = start(&namespace);
        until("the object is gone", async || match namespace.object(&name).await {
            Ok(object) => Err(format!("{object:#}\n{}", operator.output())),
            Err(told) if told.contains("NotFound") => Ok(()),
            Err(told) => Err(told),
        })
        .await;
        // Earlier, the process may not listen to signals yet.
        operator.until_says("Starting the watch-stream for kopfexamples").await;
        operator.stop().await.assert_code(0);
        if last {
            return;
        }
    }
    panic!("the deletion has more than {STEPS_MAX} steps");
}
