//! The clock of the machine is set forward or back: pauses and timeouts keep their length.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::Cause,
    logic::handlers::{
        declare::Argument,
        handler::Kind,
        outcome::{CallEnd, Raised, RaisedKind},
    },
    ports::{BoxFuture, Clock, Steps},
    testing::{
        BASE, CallLog, Environment, NativeScripts, RunningOperator, declared, examples, object,
        pass,
    },
};
use kopf_apiserver::ApiServer;

const DAY: i64 = 24 * 60 * 60;

/// A cluster whose clock can be set, and an operator with a handler that succeeds at its third attempt, ten seconds apart.
struct Stage {
    env: Environment,
    steps: Steps,
    calls: CallLog,
}

impl Stage {
    fn new() -> Self {
        let (clock, steps) = Clock::stepping(BASE.parse().expect("a timestamp"));
        let env = Environment::with_clock(ApiServer::builder().resource(examples()), clock);
        Stage { env, steps, calls: CallLog::default() }
    }

    fn start(&self) -> RunningOperator {
        let (scripts, calls) = (NativeScripts::default(), self.calls.clone());
        let function = scripts.handler("made", move |invocation| {
            let attempt = invocation.attempt.expect("an attempt");
            calls.add(format!("attempt {}", attempt.retry));
            let Cause::Object(_) = &invocation.cause else { panic!("of an object") };
            Box::pin(async move {
                if attempt.retry == 2 {
                    return CallEnd::Returned(None);
                }
                let kind = RaisedKind::Temporary(Some(Duration::from_secs(10)));
                CallEnd::Raised(Raised { kind, message: "later".into(), trace: None })
            }) as BoxFuture<'static, CallEnd>
        });
        let options = vec![("timeout".to_owned(), Argument::Value(60.into()))];
        let selectors = vec![Argument::Value("kopfexamples".into())];
        let handler = declared(Kind::Create, selectors, options, function);
        RunningOperator::start(self.env.operator(Arc::new(scripts), vec![handler]))
    }
}

async fn check_a_step(seconds: i64) {
    let stage = Stage::new();
    let running = stage.start();
    pass(1).await;
    stage.env.create(object("ns1", "a"));
    pass(5).await;
    stage.steps.set_ahead(seconds);
    pass(40).await;
    assert_eq!(stage.calls.lines(), ["attempt 0", "attempt 1", "attempt 2"], "{seconds} s");
    let times: Vec<_> = stage.calls.timed().into_iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!((times[1] - times[0], times[2] - times[1]), (10, 10), "{seconds} s: {times:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_does_not_prolong_pauses() {
    check_a_step(-600).await;
    check_a_step(-DAY).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_ends_no_timeout() {
    check_a_step(600).await;
    check_a_step(DAY).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_clock_that_was_ahead_is_taken_as_written_now() {
    let stage = Stage::new();
    stage.steps.set_ahead(DAY);
    let running = stage.start();
    pass(1).await;
    stage.env.create(object("ns1", "a"));
    pass(5).await;
    running.stop().await;
    stage.steps.set_ahead(0);
    let running = stage.start();
    pass(60).await;
    assert_eq!(stage.calls.lines(), ["attempt 0", "attempt 1", "attempt 2"]);
    running.stop().await;
}
