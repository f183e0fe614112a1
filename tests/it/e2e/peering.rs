//! Operators that pause for each other, this program and Python's Kopf, and replicas with a leader, on a real API server.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use super::namespace::{Namespace, is_settled};
use super::operator::{Ended, Operator, file, kopf};
use super::server::variable;
use super::until;
use crate::vectors::say;

const PAUSING: &str = "Pausing operations in favour of [<Peer ";
const CONFLICT: &str = "Possibly conflicting operators with the same priority: [<Peer ";
const RESUMING: &str =
    "Resuming operations after the pause. Conflicting operators with the same priority are gone.";

/// The operator that runs.
#[derive(Clone, Copy, Debug)]
enum Which {
    Lua,
    Python,
}

impl Which {
    /// Starts an operator that serves the namespace and uses its peering object.
    fn start(self, namespace: &Namespace, priority: &str) -> Operator {
        let place = ["-P", &namespace.name, "-p", priority, "-n", &namespace.name];
        let script = |language: &str| file(&format!("tests/e2e/peering/handlers.{language}"));
        match self {
            Which::Lua => operator(namespace, &script("lua"), &place[..4]),
            Which::Python => Operator::start(
                Command::new(variable("KOPF_PYTHON").expect("checked before"))
                    .env("KUBECONFIG", namespace.kubeconfig())
                    .args(["-m", "kopf", "run", "--verbose"])
                    .args(place)
                    .arg(script("py")),
            ),
        }
    }
}

/// Creates a namespace with a peering object; prints a line and returns `None` if there is no server.
async fn prepare(test: &str) -> Option<Namespace> {
    let namespace = Namespace::for_test(test).await?;
    define(&namespace, test).await;
    Some(namespace)
}

/// Starts the built binary for the namespace, with short delays and this script.
pub(super) fn operator(namespace: &Namespace, script: &Path, args: &[&str]) -> Operator {
    let mut command = kopf(&namespace.kubeconfig(), &["--verbose", "-n", &namespace.name]);
    Operator::start(command.args(args).arg(file("tests/e2e/quick.lua")).arg(script))
}

/// Creates the CRDs, and a peering object of this name.
pub(super) async fn define(namespace: &Namespace, name: &str) {
    namespace.define("examples/peering.yaml").await;
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": { "name": name },
    });
    until("the peering object is created", async || {
        namespace.try_kubectl(&["apply", "-f", "-"], &object.to_string()).await
    })
    .await;
}

fn has_python(test: &str) -> bool {
    let found = variable("KOPF_PYTHON").is_some();
    if !found {
        say(&format!("e2e {test}: skipped, KOPF_PYTHON is no Python with Kopf"));
    }
    found
}

/// Returns the records of a peering object.
async fn records(namespace: &Namespace, name: &str) -> Value {
    let text = namespace.kubectl(&["get", "kopfpeering", name, "-o", "json"]).await;
    let object: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
    object.get("status").cloned().unwrap_or_else(|| json!({}))
}

/// Waits until a peering object has this many records.
pub(super) async fn until_records(namespace: &Namespace, name: &str, count: usize) -> Value {
    until(&format!("{count} records"), async || {
        let found = records(namespace, name).await;
        let is_right = found.as_object().is_some_and(|it| it.len() == count);
        if is_right { Ok(found) } else { Err(found.to_string()) }
    })
    .await
}

/// Runs `kopf freeze` or `kopf resume` to its end.
async fn command(namespace: &Namespace, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", namespace.kubeconfig()).env("USER", "ops").args(args);
    Operator::start(&mut command).ended().await
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "name": name }, "spec": { "field": "value" },
    })
}

#[tokio::test]
async fn python_pauses_for_a_stronger_one_of_ours() {
    pauses("peering-python-lua", Which::Python, Which::Lua).await;
}

#[tokio::test]
async fn ours_pauses_for_a_stronger_one_of_python() {
    pauses("peering-lua-python", Which::Lua, Which::Python).await;
}

#[tokio::test]
async fn ours_pauses_for_a_stronger_one_of_ours() {
    pauses("peering-lua-lua", Which::Lua, Which::Lua).await;
}

/// Checks that the weak operator works, pauses while the strong one runs, and works again.
async fn pauses(test: &str, weak: Which, strong: Which) {
    if !has_python(test) {
        return;
    }
    let Some(namespace) = prepare(test).await else { return };
    let first = weak.start(&namespace, "0");
    namespace.create(&object("one")).await;
    namespace.until_object("one", "the weak one works", is_settled).await;
    let second = strong.start(&namespace, "10");
    first.until_says(PAUSING).await;
    first.until_says("Pausing the watch-stream for ").await;
    let both = until_records(&namespace, test, 2).await;
    let priorities: Vec<_> = both.as_object().expect("records").values().collect();
    for record in priorities {
        assert_eq!(record["lifetime"], 60);
        assert!(record["priority"] == 0 || record["priority"] == 10, "{record}");
    }
    namespace.create(&object("two")).await;
    namespace.until_object("two", "the strong one works", is_settled).await;
    let second = second.stop().await;
    first.until_says(RESUMING).await;
    namespace.create(&object("three")).await;
    namespace.until_object("three", "the weak one works again", is_settled).await;
    let first = first.stop().await;
    for (operator, objects) in [(&first, ["one", "three"]), (&second, ["two", "two"])] {
        operator.assert_code(0);
        operator.assert_count(
            "Handler 'create_fn' succeeded.",
            if objects[0] == objects[1] { 1 } else { 2 },
        );
        for name in objects {
            operator.assert_count(&format!("/{name}] Handler 'create_fn' succeeded."), 1);
        }
    }
    until_records(&namespace, test, 0).await;
}

#[tokio::test]
async fn ours_and_pythons_of_the_same_priority_both_pause() {
    let test = "peering-equal";
    if !has_python(test) {
        return;
    }
    let Some(namespace) = prepare(test).await else { return };
    let python = Which::Python.start(&namespace, "0");
    until_records(&namespace, test, 1).await;
    let ours = Which::Lua.start(&namespace, "0");
    for operator in [&python, &ours] {
        operator.until_says(CONFLICT).await;
    }
    // This operator starts paused, because its peering is mandatory.
    python.until_says("Pausing all operators, including self: [<Peer ").await;
    namespace.create(&object("one")).await;
    python.stop().await.assert_code(0);
    ours.until_says(RESUMING).await;
    namespace.until_object("one", "the one that is left works", is_settled).await;
    ours.stop().await.assert_count("Handler 'create_fn' succeeded.", 1);
}

#[tokio::test]
async fn freeze_and_resume_are_understood_by_both() {
    let test = "peering-freeze";
    if !has_python(test) {
        return;
    }
    let Some(namespace) = prepare(test).await else { return };
    let place = ["-n", test, "-P", test];
    for which in [Which::Lua, Which::Python] {
        let operator = which.start(&namespace, "0");
        until_records(&namespace, test, 1).await;
        let frozen =
            command(&namespace, &[&["freeze", "-t", "600", "-m", "a test"][..], &place].concat())
                .await;
        frozen.assert_code(0);
        frozen.assert_count("Frozen for 600 s: operators with a priority below 100 pause", 1);
        operator.until_says(PAUSING).await;
        command(&namespace, &[&["resume"][..], &place].concat()).await.assert_code(0);
        operator.until_says(RESUMING).await;
        operator.stop().await.assert_code(0);
        until_records(&namespace, test, 0).await;
    }
    // The identity of a person is the same as in Python: each program can remove the record of the other.
    let ours = Which::Lua.start(&namespace, "0");
    until_records(&namespace, test, 1).await;
    let python = |args: &[&str]| {
        let mut command = Command::new(variable("KOPF_PYTHON").expect("checked before"));
        command
            .env("KUBECONFIG", namespace.kubeconfig())
            .env("LOGNAME", "ops")
            .env_remove("POD_ID");
        command.args(["-m", "kopf"]).args(args).args(place);
        Operator::start(&mut command)
    };
    python(&["freeze", "-t", "600"]).ended().await.assert_code(0);
    ours.until_says(PAUSING).await;
    let resumed = command(&namespace, &[&["resume"][..], &place].concat()).await;
    resumed.assert_code(0);
    resumed.assert_count("Resumed: removed the record of 'ops@", 1);
    ours.until_says(RESUMING).await;
    ours.stop().await.assert_code(0);
}

#[tokio::test]
async fn a_freeze_of_what_is_not_there_says_how_to_create_it() {
    let test = "peering-missing";
    let Some(namespace) = prepare(test).await else { return };
    let ended = command(&namespace, &["freeze", "-n", test, "-P", "other", "-t", "60"]).await;
    ended.assert_code(1);
    ended.assert_one_error();
    ended.assert_count(&format!("error: there is no KopfPeering 'other' in '{test}'"), 1);
    ended.assert_count("| kubectl apply -f -", 1);
    let ended = command(&namespace, &["resume", "-n", test, "-P", test]).await;
    ended.assert_code(0);
    ended.assert_count("Nothing to resume: the KopfPeering 'peering-missing' in 'peering-missing' has no record of 'ops@", 1);
}

#[tokio::test]
async fn two_replicas_elect_a_leader_and_the_other_takes_over_when_it_is_killed() {
    for language in ["lua", "rhai"] {
        let test = format!("leadership-{language}");
        let Some(namespace) = Namespace::for_test(&test).await else { return };
        let start = || {
            let script = file(&format!("examples/06-peering/handlers.{language}"));
            let args = ["--verbose", "--standalone", "--leader-elect", "--set"];
            let lease = format!("leadership.namespace={test}");
            Operator::start(
                kopf(&namespace.kubeconfig(), &args).arg(lease).args(["-n", &test]).arg(script),
            )
        };
        let leader = start();
        leader
            .until_says(&format!("This replica leads: it holds the lease 'kopf' in '{test}'."))
            .await;
        let standby = start();
        standby.until_says("This replica is a standby: ").await;
        for name in ["one", "two"] {
            namespace.create(&object(name)).await;
            namespace.until_object(name, "the leader works", is_settled).await;
        }
        let killed = leader.crash().await; // kill -9
        namespace.create(&object("three")).await;
        standby.until_says("This replica leads: it holds the lease 'kopf'").await;
        namespace.until_object("three", "the standby works", is_settled).await;
        let third = start();
        third.until_says("This replica is a standby: ").await;
        let standby = standby.stop().await;
        standby.assert_code(0);
        standby.assert_count("Released the lease", 1);
        third.until_says("This replica leads: it holds the lease 'kopf'").await;
        let third = third.stop().await;
        let all = [&killed, &standby, &third];
        for (name, who) in [("one", 0), ("two", 0), ("three", 1)] {
            for (index, operator) in all.iter().enumerate() {
                let line = format!("/{name}] Handler 'create_fn' succeeded.");
                operator.assert_count(&line, usize::from(index == who));
            }
        }
        // A takeover begins with a list: the view of the standby may be older than the changes of the leader.
        standby.assert_count("Starting the watch-stream for kopfexamples.v1.kopf.dev", 2);
    }
}
