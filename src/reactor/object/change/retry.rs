//! Retries handlers that have failed permanently, after an edit of their code.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{self, Instant};

use super::{ChangeContext, Changing, Level};
use crate::handling::asking::FilterRetries;
use crate::logic::{
    change::{
        cause::Change,
        failed::FailedHandlers,
        filters::{Answers, Subject},
        selection::{self, Certainty},
    },
    handlers::{handler::Handler, outcome::LogLevel},
    object::{diff, reason::Reason},
};

/// A limit on the number of objects that start per second: an edit may affect thousands.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Rate(Mutex<Option<Instant>>);

impl Rate {
    /// Reserves a start time for one object.
    fn reserve(&self, per_second: usize) -> Instant {
        let mut next = self.0.lock();
        let now = Instant::now();
        let moment = next.filter(|it| *it > now).unwrap_or(now);
        let pause = Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX).max(1);
        *next = Some(moment + pause);
        moment
    }
}

impl Changing<'_> {
    /// Returns the handlers to retry and the change that they see: the reason of the failed attempt with the present object. Returns `None`
    /// if there are none, or if a newer event arrives first.
    pub(super) async fn again(
        &mut self,
        change: &Change,
        level: &Level<'_>,
    ) -> Option<(Change, Vec<Arc<Handler>>)> {
        let ChangeContext { serving, logger, object, .. } = self.context;
        let failed = FailedHandlers::of(&serving.settings.persistence, object.body());
        let which = serving.settings.reload.retry_failed;
        let (reason, edited) = failed.edited(&serving.handlers.changing, which)?;
        let mut handlers = Vec::new();
        for handler in edited {
            let retries = self.filters.retries(serving, self.memory.undecided);
            if level.wants(&handler, self.filters.answers(), retries).await {
                handlers.push(handler);
            }
        }
        if handlers.is_empty() || !self.is_in_turn().await {
            return None;
        }
        for handler in &handlers {
            let why = if failed.is_requested(&handler.id) {
                "and its retry was requested"
            } else {
                "and has been edited since"
            };
            let text = format!("{handler} failed permanently {why}: retrying.");
            logger.log(LogLevel::Info, &text);
        }
        Some((seen_again(change, reason), handlers))
    }

    /// Waits until this object may start. Returns false if a newer event or a reload interrupts the wait.
    async fn is_in_turn(&self) -> bool {
        let serving = self.context.serving;
        let moment = serving.retries.reserve(serving.settings.reload.retry_rate);
        let wait = async {
            tokio::select! {
                biased; // the reserved time comes first
                () = time::sleep_until(moment) => true,
                () = self.queue.pressure() => false,
                () = serving.replaced.cancelled() => false,
            }
        };
        // Other workers may run meanwhile.
        self.permit.release_while(wait).await
    }
}

impl Level<'_> {
    /// Returns whether the filters of a handler certainly match the object, whatever has changed.
    async fn wants(
        &self,
        handler: &Arc<Handler>,
        mut answers: Answers,
        retries: FilterRetries<'_>,
    ) -> bool {
        let ChangeContext { serving, logger, object, memo, .. } = self.context;
        let cause = self.cause(super::kwargs(self.change));
        let filter_caller = serving.filter_caller(&cause, memo, logger);
        let subject = Subject { object, change: Some(self.change) };
        let one = std::slice::from_ref(handler);
        let decision = |known: &Answers| selection::prematched(one, &subject, known);
        let wants = filter_caller.decide_without_failures(&mut answers, retries, decision).await;
        wants == Certainty::Yes
    }
}

/// Returns the change for a retry: a failed creation is a creation again; otherwise nothing has changed since the last handling.
fn seen_again(change: &Change, reason: Reason) -> Change {
    let mut change = Change { reason, ..change.clone() };
    if reason == Reason::Create {
        change.old = None;
        change.diff = Arc::new(diff::diff(&serde_json::Value::Null, &change.new));
    }
    change
}
