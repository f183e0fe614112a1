//! Schedules in several processes without leader election, on a real API server.

use std::collections::BTreeSet;

use super::namespace::Namespace;
use super::operator::{Operator, file, kopf};

/// Runs two processes, one of which is killed and replaced by a third: no slot runs twice.
async fn play(test: &str, language: &str) {
    let Some(namespace) = Namespace::for_test(test).await else { return };
    let script = file(&format!("tests/e2e/schedules/handlers.{language}"));
    let start = || {
        let place =
            ["--standalone", "--verbose", "-n", &namespace.name, "--lease", &namespace.name];
        Operator::start(kopf(&namespace.kubeconfig(), &place).arg(&script))
    };
    let a = start();
    a.until_says_times("ticks ", 2).await;
    let b = start();
    a.until_says_times("ticks ", 4).await;
    let mut outputs = vec![a.crash().await];
    b.until_says_times("ticks ", 3).await;
    let c = start();
    c.until_says_times("another process runs it", 1).await;
    outputs.push(b.stop().await);
    c.until_says_times("ticks ", 2).await;
    outputs.push(c.stop().await);
    let lines = outputs.iter().flat_map(|it| it.output.lines());
    let slots: Vec<_> = lines.filter_map(|it| it.split_once("ticks ")).map(|it| it.1).collect();
    let unique: BTreeSet<_> = slots.iter().collect();
    assert_eq!(slots.len(), unique.len(), "{slots:?}");
    assert!(slots.len() >= 9, "{slots:?}");
}

#[tokio::test]
async fn no_slot_of_a_schedule_in_lua_runs_twice() {
    play("schedules-lua", "lua").await;
}

#[tokio::test]
async fn no_slot_of_a_schedule_in_rhai_runs_twice() {
    play("schedules-rhai", "rhai").await;
}
