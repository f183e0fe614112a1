//! One attempt of one handler, from “is invoked” to its outcome.
//!
//! Step 5 of the walk. Before: `reactor/object/change/`. After: `logic/change/settle.rs`.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::time;

use super::failing::{Conclusion, Reporter};
use crate::call::{
    AttemptKwargs, AwaitedCall, CallServices, Callers, Cause, Children, Invocation, Logger, Memo,
    Scripts,
};
use crate::logic::{
    change::undecided,
    handlers::{
        handler::{Handler, Kind},
        outcome::{self, CallEnd, Effort, LogLevel, LogLine, Outcome, Raised, RaisedKind},
    },
    text::python_text,
};
use crate::ports::Clock;
use crate::settings::ExecutionSettings;

/// The inputs that the attempts of all handlers share.
#[derive(Clone, Copy)]
pub struct HandlerRunner<'a> {
    /// The scripts that the handlers belong to.
    pub scripts: &'a dyn Scripts,
    /// The clock for start times and limits.
    pub clock: Clock,
    /// The default options of handlers.
    pub settings: &'a ExecutionSettings,
    /// The services that every call can reach.
    pub services: &'a Arc<CallServices>,
}

/// One attempt before its start.
pub struct Try {
    /// The handler to call.
    pub handler: Arc<Handler>,
    /// Number of earlier attempts.
    pub retries: u64,
    /// When the first attempt was due.
    pub started: Timestamp,
    /// The cause of the call, already reduced to the handler's field.
    pub cause: Cause,
    /// The memo for the call.
    pub memo: Memo,
    /// The logger for lines about the attempt.
    pub logger: Logger,
}

/// A started attempt: the state kept while its call waits, as small as possible.
pub struct Begun {
    /// Keeps the script loaded even if the handler is replaced meanwhile: the call may leave functions behind.
    handler: Arc<Handler>,
    /// The function to call, with all its inputs.
    pub invocation: AwaitedCall,
}

impl HandlerRunner<'_> {
    /// Makes the attempt, if the limits of the handler allow it, and logs the outcome.
    pub async fn run(&self, attempt: Try) -> Outcome {
        self.run_with(attempt, None, |invocation| self.scripts.call(invocation)).await
    }

    /// Makes the attempt for a handler that other work waits for: the call is dropped at `settings.execution.event_timeout`. In that case,
    /// also returns how long not to call the handler for the same object.
    pub async fn run_briefly(&self, attempt: Try) -> (Outcome, Option<Duration>) {
        let Some(limit) = self.settings.event_timeout else {
            return (self.run(attempt).await, None);
        };
        let pause = limit.saturating_mul(undecided::REST);
        let is_late = AtomicBool::new(false);
        let call = |invocation| async {
            let call = time::timeout(limit, self.scripts.call(invocation));
            call.await.unwrap_or_else(|_elapsed| {
                is_late.store(true, Ordering::Relaxed);
                CallEnd::Raised(late(limit, pause))
            })
        };
        let outcome = self.run_with(attempt, None, call).await;
        (outcome, is_late.into_inner().then_some(pause))
    }

    /// Makes the attempt for a handler that may have sub-handlers: `call` makes the call and runs them.
    ///
    /// When the handler's time is up, the call is dropped, even if it waits for something else.
    pub async fn run_with<F: Future<Output = CallEnd>>(
        &self,
        attempt: Try,
        children: Option<Children>,
        call: impl FnOnce(Arc<Invocation>) -> F,
    ) -> Outcome {
        let leadership = &self.services.leadership;
        // Nothing starts or continues when another replica may lead.
        let begin = pin!(async { self.begin(attempt, children) });
        let begun = match leadership.while_acting(begin).await {
            Ok(begun) => begun,
            Err(outcome) => return *outcome,
        };
        let ended = {
            let call = pin!(call(Arc::clone(&begun.invocation)));
            let in_time = pin!(async {
                match begun.time_left() {
                    // A call that ends exactly at the limit has ended in time.
                    Some(left) => time::timeout(left, call).await.ok(),
                    None => Some(call.await),
                }
            });
            leadership.while_acting(in_time).await
        };
        self.end(&begun, ended)
    }

    /// Returns a reporter of the ends of attempts.
    pub fn reporter(&self) -> Reporter<'_> {
        Reporter { services: self.services, clock: self.clock, settings: self.settings }
    }

    /// Returns the outcome of an attempt that is not made because of an earlier error.
    pub fn refuse(&self, attempt: &Try, raised: Raised) -> Outcome {
        let Try { handler, retries, started, cause, logger, .. } = attempt;
        let effort = Effort { retries: *retries, runtime: since(*started, self.clock.now()) };
        let trace = raised.trace.clone();
        let (outcome, line) = outcome::before(handler, effort).unwrap_or_else(|| {
            let backoff = self.settings.default_backoff;
            outcome::after(handler, CallEnd::Raised(raised), effort, backoff)
        });
        let line = LogLine { with_trace: true, ..line };
        let (before, trace) = (effort, trace.as_deref());
        let (ended_as, line, resource) = (&outcome, &line, cause.resource());
        let ended = Conclusion { handler, before, outcome: ended_as, line, trace, resource };
        self.reporter().report(ended, logger);
        outcome
    }

    /// Starts the attempt, if the limits of the handler allow it; otherwise returns its outcome.
    pub fn begin(&self, attempt: Try, children: Option<Children>) -> Result<Begun, Box<Outcome>> {
        let Try { handler, retries, started, cause, memo, logger } = attempt;
        logger.line(&outcome::invoked(&handler), None);
        let before = Effort { retries, runtime: since(started, self.clock.now()) };
        if let Some((outcome, line)) = outcome::before(&handler, before) {
            let (handler, line, resource) = (&*handler, &line, cause.resource());
            let (ended_as, trace) = (&outcome, None);
            let ended = Conclusion { handler, before, outcome: ended_as, line, trace, resource };
            self.reporter().report(ended, &logger);
            return Err(Box::new(outcome));
        }
        let attempt = AttemptKwargs { retry: retries, started, runtime: before.runtime };
        let services = Arc::clone(self.services);
        let invocation = Invocation {
            handler: handler.for_scripts(),
            attempt: Some(attempt),
            cause,
            memo,
            logger,
            services,
            children,
            callers: Callers::default(),
        };
        let invocation = AwaitedCall::new(Arc::new(invocation));
        Ok(Begun { handler, invocation })
    }

    /// Ends the attempt with the result of its call; `None` means that the time was up.
    pub fn end(&self, begun: &Begun, ended: Option<CallEnd>) -> Outcome {
        let (handler, logger) = (&*begun.handler, &begun.invocation.logger());
        let resource = begun.invocation.cause.resource();
        let before = begun.before();
        let started = begun.invocation.attempt.map(|it| it.started);
        let runtime = started.map(|it| since(it, self.clock.now())).unwrap_or_default();
        let Some(ended) = ended else {
            let (outcome, line) = outcome::timed_out(handler, runtime);
            let (ended_as, line, trace) = (&outcome, &line, None);
            let ended = Conclusion { handler, before, outcome: ended_as, line, trace, resource };
            self.reporter().report(ended, logger);
            return outcome;
        };
        let trace = match &ended {
            CallEnd::Raised(raised) => raised.trace_from(&handler.location),
            CallEnd::Returned(_) | CallEnd::Keyed(_) => None,
        };
        if let CallEnd::Returned(Some(result)) = &ended {
            self.warn_of_object(handler, result, logger);
        }
        let effort = Effort { retries: before.retries, runtime };
        let (outcome, line) = outcome::after(handler, ended, effort, self.settings.default_backoff);
        let (ended_as, line, trace) = (&outcome, &line, trace.as_deref());
        let ended = Conclusion { handler, before, outcome: ended_as, line, trace, resource };
        self.reporter().report(ended, logger);
        outcome
    }
}

impl HandlerRunner<'_> {
    /// Warns once per handler if its result is a whole object: it is stored in the status, which is hardly intended.
    fn warn_of_object(&self, handler: &Handler, result: &Value, logger: &Logger) {
        use Kind::{Create, Daemon, Delete, Field, Resume, Sub, Timer, Update};
        let is_stored = matches!(
            handler.kind,
            Create | Update | Delete | Resume | Field | Sub | Daemon | Timer
        );
        let is_object = result.get("apiVersion").is_some_and(Value::is_string)
            && result.get("kind").is_some_and(Value::is_string)
            && result.pointer("/metadata/uid").is_some_and(Value::is_string);
        if is_stored && is_object && self.services.notices.is_first(&handler.id) {
            let id = &handler.id;
            let line = format!(
                "Handler '{id}' returned a whole object, which is stored in the status: return only what you need, or end the function with `()` in Rhai."
            );
            logger.log(LogLevel::Warning, &line);
        }
    }
}

impl Begun {
    /// Returns how long the call may take; `None` means no limit.
    pub fn time_left(&self) -> Option<Duration> {
        outcome::time_left(&self.handler, self.before())
    }

    fn before(&self) -> Effort {
        let attempt = self.invocation.attempt;
        attempt.map_or_else(Effort::default, |it| Effort { retries: it.retry, runtime: it.runtime })
    }
}

fn late(limit: Duration, rest: Duration) -> Raised {
    let (limit, pause) = (python_text::seconds(limit), python_text::seconds(rest));
    let message = format!(
        "it did not return within {limit} s (settings.execution.event_timeout), and is not called for this object for {pause} s"
    );
    Raised { kind: RaisedKind::Temporary(Some(rest)), message, trace: None }
}

/// Returns the time from `started` to `now`; zero if the clock went backwards.
pub fn since(started: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(started)).unwrap_or_default()
}
