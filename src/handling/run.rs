//! One attempt of one handler, from “is invoked” to its outcome.
//!
//! Hop 5 of the walk. Before: `reactor/change.rs`. After: `logic/settle.rs`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::logic::{
    handler::Handler,
    outcome::{self, Effort, Ended, Outcome},
};
use crate::ports::{Attempt, Cause, Clock, Facilities, Invocation, Logger, Memo, Scripts};
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
        let Try { handler, retries, started, cause, memo, logger } = attempt;
        logger.line(&outcome::invoked(&handler), None);
        let runtime = since(started, self.clock.now());
        if let Some((outcome, line)) = outcome::before(&handler, Effort { retries, runtime }) {
            logger.line(&line, None);
            return outcome;
        }
        let attempt = Some(Attempt { retry: retries, started, runtime });
        let invocation = Invocation {
            handler: Arc::clone(&handler),
            attempt,
            cause,
            memo,
            logger: logger.clone(),
            facilities: Arc::clone(self.facilities),
        };
        let ended = self.scripts.call(Arc::new(invocation)).await;
        let trace = match &ended {
            Ended::Raised(raised) => raised.trace.clone(),
            Ended::Returned(_) | Ended::Keyed(_) => None,
        };
        let runtime = since(started, self.clock.now());
        let (outcome, line) = outcome::after(
            &handler,
            ended,
            Effort { retries, runtime },
            self.settings.default_backoff,
        );
        logger.line(&line, trace.as_deref());
        outcome
    }
}

/// The time from `started` to `now`; zero if the clock went backwards.
pub fn since(started: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(started)).unwrap_or_default()
}
