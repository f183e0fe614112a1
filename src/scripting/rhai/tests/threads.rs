//! The number of threads, and calls that need none.

use std::{
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
use crate::logic::handlers::function::ScriptId;
use crate::logic::{background::stopping::StopReason, handlers::outcome::CallEnd, object::Object};
use crate::scripting::{
    Placement,
    rhai::runner::{JobRunner, RunError},
};
use crate::settings::Settings;

#[tokio::test]
async fn a_short_job_runs_where_it_is_awaited_unless_its_script_computes() {
    let runner = JobRunner::new(ScriptId(1), "it.rhai", &Placement::Threads.into());
    let short = || runner.run_inline(|| true, || thread::current().id()).ok();
    let here = Some(Ok(thread::current().id()));
    assert_eq!(short(), here);
    assert!(runner.run_inline(|| false, || ()).is_err());
    // Without the panic hook: it may print a backtrace for longer than a short job may take.
    let panicked = runner.run_inline(|| true, || -> u8 { panic::resume_unwind(Box::new("oh no")) });
    assert_eq!(panicked.ok(), Some(Err(RunError::Panicked("oh no".into()))));
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
