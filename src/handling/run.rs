//! One attempt of one handler, from “is invoked” to its outcome.
//!
//! Hop 5 of the walk. Before: `reactor/change.rs`. After: `logic/settle.rs`.

use std::{future::Future, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time;

use crate::logic::{
    handler::Handler,
    outcome::{self, Effort, Ended, Outcome},
};
use crate::ports::{
    Attempt, Cause, Children, Clock, Facilities, Invocation, Logger, Memo, Scripts,
};
use crate::settings::Execution;

/// What attempts of all handlers have in common.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// The scripts.
    pub scripts: &'a dyn Scripts,
    /// The time.
    pub clock: Clock,
    /// Defaults of handlers.
    pub settings: &'a Execution,
    /// What every call can reach.
    pub facilities: &'a Arc<Facilities>,
}

/// One attempt, before it is made.
pub struct Try {
    /// The handler.
    pub handler: Arc<Handler>,
    /// Attempts made before.
    pub retries: u64,
    /// When the first attempt was due.
    pub started: Timestamp,
    /// What it is about, already reduced to the handler's field.
    pub cause: Cause,
    /// The memo it sees.
    pub memo: Memo,
    /// Where its lines go.
    pub logger: Logger,
}

impl Runner<'_> {
    /// Makes the attempt, if the handler's limits allow, and logs how it went.
    pub async fn run(&self, attempt: Try) -> Outcome {
        self.run_with(attempt, None, |invocation| self.scripts.call(invocation)).await
    }

    /// The same for a handler that may have sub-handlers: `call` makes the call and runs them.
    ///
    /// When the handler's time is up, the call is dropped, whatever it waits for.
    pub async fn run_with<F: Future<Output = Ended>>(
        &self,
        attempt: Try,
        children: Option<Children>,
        call: impl FnOnce(Arc<Invocation>) -> F,
    ) -> Outcome {
        let Try { handler, retries, started, cause, memo, logger } = attempt;
        logger.line(&outcome::invoked(&handler), None);
        let effort = || Effort { retries, runtime: since(started, self.clock.now()) };
        let before = effort();
        if let Some((outcome, line)) = outcome::before(&handler, before) {
            logger.line(&line, None);
            return outcome;
        }
        let invocation = Invocation {
            handler: handler.inside(),
            attempt: Some(Attempt { retry: retries, started, runtime: before.runtime }),
            cause,
            memo,
            logger: logger.clone(),
            facilities: Arc::clone(self.facilities),
            children,
        };
        let call = call(Arc::new(invocation));
        let ended = match outcome::time_left(&handler, before) {
            // A call that ends at the very last moment has ended in time.
            Some(left) => time::timeout(left, call).await.ok(),
            None => Some(call.await),
        };
        let Some(ended) = ended else {
            let (outcome, line) = outcome::timed_out(&handler, effort().runtime);
            logger.line(&line, None);
            return outcome;
        };
        let trace = match &ended {
            Ended::Raised(raised) => raised.trace.clone(),
            Ended::Returned(_) | Ended::Keyed(_) => None,
        };
        let (outcome, line) =
            outcome::after(&handler, ended, effort(), self.settings.default_backoff);
        logger.line(&line, trace.as_deref());
        outcome
    }
}

/// The time from `started` to `now`; zero if the clock went backwards.
pub fn since(started: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(started)).unwrap_or_default()
}
