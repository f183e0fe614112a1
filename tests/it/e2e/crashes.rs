//! `kill -9` at every step of the handling, and a restart: what is recorded as finished stays finished, the rest runs.
//!
//! A full run is done first, to learn at which lines of the log it can be interrupted. Then it is repeated with a new object
//! and a kill after the first of these lines, after the second, and so on. The log lines stand between the API calls.
//!
//! Not promised, by us as by Kopf: the *results* of the last cycle. They are patched into the status after the object itself,
//! and a crash between the two requests loses them.

use serde_json::{Value, json};

use super::namespace::{Namespace, is_settled, record};
use super::operator::{Operator, file, ours};
use super::until;

/// The creation handlers of `tests/e2e/crash.lua`.
const HANDLERS: [&str; 3] = ["one", "two", "three"];

/// The last line of a creation, and of a deletion.
const CREATED: &str = "Creation is processed";
const DELETED: &str = "Deleted, really deleted";

/// More steps than a full run can have: a run that never ends must not go unnoticed.
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

/// Everything the operator says about the object is a step.
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
        // A second object shows that the operator has looked at everything that was there when it started.
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
        // Earlier, a signal may find a process that does not listen yet.
        operator.until_says("Starting the watch-stream for kopfexamples").await;
        operator.stop().await.assert_code(0);
        if last {
            return;
        }
    }
    panic!("the deletion has more than {STEPS_MAX} steps");
}
