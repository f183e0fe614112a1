//! Waiting, cancelling, threads.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{Fixture, load, source};
use crate::logic::handlers::{function::ScriptId, outcome::CallEnd};
use crate::scripting::{
    Placement,
    blocking::{
        control::{Abort, progress},
        runner::{JobRunner, RunError},
    },
};

#[tokio::test(start_paused = true)]
async fn two_handlers_sleep_side_by_side_in_no_time() {
    let fixture = Fixture::handler("kopf.sleep(10); 1", json!({})).await;
    let start = Instant::now();
    let both = tokio::join!(fixture.call_nth(0), fixture.call_nth(0));
    assert_eq!(both.0, CallEnd::Returned(Some(json!(1))));
    assert_eq!(both.1, CallEnd::Returned(Some(json!(1))));
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_while_a_script_computes() {
    let code =
        "let n = 0; while n < 100000 { n += 1; } kopf.sleep(\"500ms\"); sleep(1); sleep(0.5); n";
    let fixture = Fixture::handler(code, json!({})).await;
    let start = Instant::now();
    assert_eq!(fixture.returned().await, json!(100_000));
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn more_handlers_than_threads_take_turns() {
    let fixture = Fixture::handler("kopf.sleep(10);", json!({})).await;
    let start = Instant::now();
    join_all((0..65).map(|_| fixture.call_nth(0))).await;
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_ends_at_its_wait() {
    let code = "ctx.memo.at = 1; kopf.sleep(10); ctx.memo.at = 2;";
    let fixture = Fixture::handler(code, json!({})).await;
    timeout(Duration::from_secs(5), fixture.call_nth(0)).await.unwrap_err();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(fixture.memo.lock()["at"], json!(1));
}

#[tokio::test]
async fn a_dropped_call_ends_while_it_computes() {
    let runner = JobRunner::new("rhai-1".to_owned(), "it.rhai", &Placement::Threads.into());
    let (start, started) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let endless = runner.run(move || {
        start.send(()).unwrap();
        while progress() != Some(Abort::Cancelled) {}
        end.send(()).unwrap();
    });
    tokio::select! {
        biased;
        _ = endless => panic!("it ended by itself"),
        it = started => it.unwrap(),
    }
    ended.await.unwrap();
}

#[tokio::test]
async fn threads_of_their_own_give_the_same_results() {
    let text = "kopf::on_create(\"things\", |ctx| { kopf.sleep(0.001); ctx.spec.x });";
    let loaded = load(ScriptId(1), &source(text), &Placement::Threads.into()).await;
    let loaded = loaded.unwrap_or_else(|error| panic!("{error:?}"));
    let fixture = Fixture::of(loaded, json!({ "spec": { "x": 1 } }));
    let all = join_all((0..100).map(|_| fixture.call_nth(0))).await;
    assert!(all.iter().all(|it| *it == CallEnd::Returned(Some(json!(1)))));
}

#[tokio::test]
async fn a_panic_of_the_host_ends_only_its_call() {
    let runner = JobRunner::new("rhai-1".to_owned(), "it.rhai", &Placement::Threads.into());
    let panicked = runner.run(|| -> u8 { panic!("oh no") }).await;
    assert_eq!(panicked, Err(RunError::Panicked("oh no".into())));
    assert_eq!(runner.run(|| 1).await, Ok(1));
}

#[tokio::test]
async fn variables_of_the_script_need_no_locks() {
    let text = "let n = 0; kopf::on_create(\"things\", |ctx| { \
                for i in 0..100 { n += 1; } n });";
    let loaded = load(ScriptId(1), &source(text), &Placement::Threads.into()).await;
    let fixture = Fixture::of(loaded.unwrap_or_else(|error| panic!("{error:?}")), json!({}));
    let all = join_all((0..50).map(|_| fixture.call_nth(0))).await;
    assert!(all.iter().all(|it| matches!(it, CallEnd::Returned(_))), "{all:?}");
    // The last call to count sees all increments.
    assert!(all.contains(&CallEnd::Returned(Some(json!(5000)))), "{all:?}");
}
