//! The number of threads, and calls that need none.

use std::{
    cell::Cell,
    panic,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::Fixture;
use crate::call::{LiveObject, Stopped};
use crate::logic::{background::stopping::StopReason, handlers::outcome::CallEnd, object::Object};
use crate::scripting::{
    Placement,
    blocking::{
        control::progress,
        inline::InlineFunction,
        runner::{JobRunner, RunError},
    },
};
use crate::settings::Settings;

const STRAIGHT: InlineFunction = InlineFunction::Straight;

#[tokio::test]
async fn a_short_job_runs_where_it_is_awaited_unless_its_script_computes() {
    let runner = JobRunner::new("rhai-1".to_owned(), "it.rhai", &Placement::Threads.into());
    let short = || runner.run_inline(|| Some(STRAIGHT), || thread::current().id());
    let here = Some(Ok(thread::current().id()));
    assert_eq!(short(), here);
    assert!(runner.run_inline(|| None, || ()).is_none());
    // Without the panic hook: it may print a backtrace for longer than a short job may take.
    let panicked =
        runner.run_inline(|| Some(STRAIGHT), || -> u8 { panic::resume_unwind(Box::new("oh no")) });
    assert_eq!(panicked, Some(Err(RunError::Panicked("oh no".into()))));
    let (free, blocked) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let long = runner.run(move || {
        begin.send(()).unwrap();
        blocked.recv().ok()
    });
    let meanwhile = async {
        begun.await.unwrap();
        assert_eq!(short(), None);
        drop(free);
    };
    assert_eq!(tokio::join!(long, meanwhile).0, Ok(None));
    assert_eq!(short(), here);
}

#[tokio::test]
async fn a_job_that_takes_long_must_be_repeated_on_a_thread_and_begins_there_after_a_few_times() {
    let runner = JobRunner::new("rhai-1".to_owned(), "it.rhai", &Placement::CurrentRuntime.into());
    let begun = Cell::new(0);
    let call = |steps| {
        let job = || {
            begun.set(begun.get() + 1);
            (0..steps).find_map(|_| progress())
        };
        runner.run_inline(|| Some(InlineFunction::Repeatable(1)), job)
    };
    assert_eq!(call(900), Some(Ok(None)));
    for _ in 0..10 {
        assert_eq!(call(2000), None);
    }
    assert_eq!(begun.get(), 4);
    assert_eq!(call(900), None);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_has_the_result_of_one_that_was_not_inline() {
    for (body, result) in [
        ("for it in ctx.spec.items { if it > 1 { return it; } }", json!(2)),
        ("let n = 0; for i in 0..5000 { n += i; } n", json!(12_497_500)),
        ("let text = `x`; for i in 0..20 { text += text; } text.len()", json!(1 << 20)),
        ("let n = 0; loop { n += 1; if n > 3000 { break n; } }", json!(3001)),
    ] {
        let fixture = Fixture::handler(body, json!({ "spec": { "items": [1, 2, 3] } })).await;
        for _ in 0..5 {
            let ended = fixture.call_nth(0).await;
            assert_eq!(ended, CallEnd::Returned(Some(result.clone())), "{body}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn daemons_leave_threads_to_other_handlers() {
    let text = "kopf::daemon(\"things\", |ctx| { ctx.memo.n = (ctx.memo.n ?? 0) + 1; \
                ctx.stopped.wait(); true }); kopf::on_create(\"things\", |ctx| ctx.memo.n);";
    let fixture = Fixture::new(text, json!({})).await;
    let live = LiveObject::new(Arc::new(Object::from_value(fixture.body.clone())));
    let stopped = Stopped::default();
    let daemon = || fixture.loaded.engine.call(fixture.background(&live, &stopped));
    let daemons = futures::future::join_all((0..100).map(|_| daemon()));
    let handler = async {
        sleep(Duration::from_secs(1)).await;
        // Daemons that never got a thread stop without having been called.
        assert_eq!(fixture.call_nth(1).await, CallEnd::Returned(Some(json!(48))));
        stopped.set(StopReason::OperatorExiting);
    };
    let (ended, ()) = tokio::join!(daemons, handler);
    let called = ended.iter().filter(|it| **it == CallEnd::Returned(Some(json!(true)))).count();
    let uncalled = ended.iter().filter(|it| **it == CallEnd::Returned(None)).count();
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
