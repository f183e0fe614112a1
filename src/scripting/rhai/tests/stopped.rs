//! What daemons and timers see: the stop flag, and the object as it is at the moment.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{Fixture, problem, run_with_budget};
use crate::call::{LiveObject, Stopped};
use crate::logic::{background::stopping::StopReason, handlers::outcome::Ended, object::Object};
use crate::settings::Settings;

async fn daemon(code: &str) -> Fixture {
    let text = format!("fn handler(ctx) {{ {code} }}\nkopf::daemon(\"things\", handler);\n");
    Fixture::new(&text, json!({ "spec": { "x": 1 }, "metadata": { "labels": { "app": "a" } } }))
        .await
}

fn live(fixture: &Fixture) -> LiveObject {
    LiveObject::new(Arc::new(Object::from_value(fixture.body.clone())))
}

/// Runs the body of a daemon; `RESOURCE_DELETED` comes after 12 s, one more reason with it.
async fn stopped_after_12s(code: &str) -> (Value, u64) {
    let (fixture, stopped, began) = (daemon(code).await, Stopped::default(), Instant::now());
    let stopping = async {
        sleep(Duration::from_secs(12)).await;
        stopped.set(StopReason::ResourceDeleted);
        stopped.set(StopReason::DaemonSignalled);
    };
    let call = fixture.loaded.engine.call(fixture.background(&live(&fixture), &stopped));
    let (ended, ()) = tokio::join!(call, stopping);
    match ended {
        Ended::Returned(result) => (result.unwrap_or_default(), began.elapsed().as_secs()),
        Ended::Keyed(entries) => panic!("{entries:?}"),
        Ended::Raised(raised) => panic!("{raised:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_time_or_with_the_stop() {
    let code = "let n = 0; while !ctx.stopped.wait(5) { n += 1; } n";
    assert_eq!(stopped_after_12s(code).await, (json!(2), 12));
    let code = "let s = ctx.stopped; [s.wait(\"500ms\"), s.wait(0), s.wait(()), s.wait()]";
    assert_eq!(stopped_after_12s(code).await, (json!([false, false, true, true]), 12));
}

#[tokio::test(start_paused = true)]
async fn the_flag_and_its_reasons_can_be_asked() {
    let code = r#"
        let s = ctx.stopped;
        let before = [ctx.stopped(), s.is_set(), s.reason == (), `${s}`];
        s.wait();
        let names = [];
        for name in s.reason { names.push(name); }
        let has = [s.reason.contains("RESOURCE_DELETED"), "OPERATOR_EXITING" in s.reason];
        [before, [ctx.stopped(), s.is_set(), `${s}`, "stopped: " + s.reason, s.reason.len()], names, has, s.reason, s.reason[1]]
    "#;
    let names = ["RESOURCE_DELETED", "DAEMON_SIGNALLED"];
    let text = "RESOURCE_DELETED|DAEMON_SIGNALLED";
    let expected = json!([
        [false, false, true, "not stopped"],
        [true, true, text, format!("stopped: {text}"), 2],
        names,
        [true, false],
        names,
        names[1],
    ]);
    assert_eq!(stopped_after_12s(code).await, (expected, 12));
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_told() {
    let code = r#"
        let told = [];
        try { ctx.stopped.wait("soon"); } catch(e) { told.push(`${e}`); }
        ctx.stopped.wait();
        try { ctx.stopped.reason.contains("resource_delete"); } catch(e) { told.push(`${e}`); }
        told
    "#;
    let told = stopped_after_12s(code).await.0;
    let time = r#"stopped.wait: expected seconds or a duration such as "10m", got "soon""#;
    let name =
        r#"stopped.reason: there is no reason "resource_delete"; did you mean `RESOURCE_DELETED`?"#;
    assert_eq!(told, json!([time, name]));
}

#[tokio::test(start_paused = true)]
async fn only_daemons_and_timers_have_it() {
    let told = problem("ctx.stopped()", json!({})).await;
    assert_eq!(told, "only daemons and timers have ctx.stopped");
    assert_eq!(super::run("ctx.stopped == ()", json!({})).await, json!(true));
}

#[tokio::test(start_paused = true)]
async fn the_object_is_seen_as_it_is_at_the_moment() {
    let code = r"
        let seen = [];
        for i in 0..2 {
            seen.push([ctx.spec.x, ctx.body.spec.x, ctx.labels.app, ctx.meta.labels.app]);
            kopf.sleep(10);
        }
        [seen, ctx.old_value == (), ctx.diff == (), ctx.reason == (), ctx.retry, ctx.resource.plural]
    ";
    let fixture = daemon(code).await;
    let live = live(&fixture);
    let call = fixture.loaded.engine.call(fixture.background(&live, &Stopped::default()));
    let change = async {
        sleep(Duration::from_secs(5)).await;
        let body = json!({ "spec": { "x": 2 }, "metadata": { "labels": { "app": "b" } } });
        live.set(&Arc::new(Object::from_value(body)));
    };
    let (ended, ()) = tokio::join!(call, change);
    let seen = json!([[1, 1, "a", "a"], [2, 2, "b", "b"]]);
    let expected = json!([seen, true, true, true, 0, "things"]);
    assert_eq!(ended, Ended::Returned(Some(expected)));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_daemon_ends_at_its_wait() {
    let fixture = daemon("ctx.memo.at = 1; ctx.stopped.wait(); ctx.memo.at = 2;").await;
    let stopped = Stopped::default();
    let call = fixture.loaded.engine.call(fixture.background(&live(&fixture), &stopped));
    timeout(Duration::from_secs(5), call).await.unwrap_err();
    stopped.set(StopReason::OperatorExiting);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(fixture.memo.lock()["at"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn daemons_leave_threads_to_other_handlers() {
    let text = "kopf::daemon(\"things\", |ctx| { ctx.memo.n = (ctx.memo.n ?? 0) + 1; \
                ctx.stopped.wait(); true }); kopf::on_create(\"things\", |ctx| ctx.memo.n);";
    let fixture = Fixture::new(text, json!({})).await;
    let (live, stopped) = (live(&fixture), Stopped::default());
    let daemon = || fixture.loaded.engine.call(fixture.background(&live, &stopped));
    let daemons = futures::future::join_all((0..100).map(|_| daemon()));
    let handler = async {
        sleep(Duration::from_secs(1)).await;
        // Those that never got a thread stop without having been called.
        assert_eq!(fixture.call_nth(1).await, Ended::Returned(Some(json!(48))));
        stopped.set(StopReason::OperatorExiting);
    };
    let (ended, ()) = tokio::join!(daemons, handler);
    let called = ended.iter().filter(|it| **it == Ended::Returned(Some(json!(true)))).count();
    let uncalled = ended.iter().filter(|it| **it == Ended::Returned(None)).count();
    assert_eq!(called + uncalled, 100);
    assert_eq!(fixture.memo.lock()["n"], json!(called));
}

#[tokio::test(start_paused = true)]
async fn the_settings_say_how_many_threads_there_are() {
    let fixture = Fixture::handler("kopf.sleep(10);", json!({})).await;
    for (threads, seconds) in [(2, 50), (100, 10), (1, 100)] {
        let mut settings = Settings::default();
        settings.execution.max_workers = Some(threads);
        fixture.loaded.engine.configure(&settings);
        let began = Instant::now();
        futures::future::join_all((0..10).map(|_| fixture.call_nth(0))).await;
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_pays_back_computing() {
    // Each turn takes about a half of what a call may compute.
    let text = "kopf::daemon(\"things\", |ctx| { for i in 0..10 { \
                let n = 0; while n < 4000 { n += 1; } ctx.stopped.wait(1); } 1 });";
    let loaded = run_with_budget(text, 50_000).await.unwrap_or_else(|error| panic!("{error:?}"));
    let fixture = Fixture::of(loaded, json!({}));
    let call = fixture.loaded.engine.call(fixture.background(&live(&fixture), &Stopped::default()));
    assert_eq!(call.await, Ended::Returned(Some(json!(1))));
}
