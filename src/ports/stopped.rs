//! The stop flag of one daemon or timer: the kwarg `stopped`.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use tokio::sync::Notify;

use crate::logic::stopping::{StopReason, StopReasons};

/// Set by the operator, seen by the script. Clones share it. One costs less than a hundred bytes: there may be many thousands.
#[derive(Clone, Debug, Default)]
pub struct Stopped(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    reasons: AtomicU16,
    changed: Notify,
}

impl Stopped {
    /// Adds a reason, wakes everybody who waits, and tells whether it is new.
    ///
    /// Nothing is added when it has ended: what ended by itself stays so.
    pub fn set(&self, reason: StopReason) -> bool {
        let add = |known| {
            let known = StopReasons::from_bits(known);
            let is_news = !known.contains(reason) && !known.contains(StopReason::Done);
            is_news.then(|| known.with(reason).bits())
        };
        let is_new = self.0.reasons.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        if is_new {
            self.0.changed.notify_waiters();
        }
        is_new
    }

    /// The reasons so far.
    pub fn reasons(&self) -> StopReasons {
        StopReasons::from_bits(self.0.reasons.load(Ordering::Acquire))
    }

    /// Whether it must stop.
    pub fn is_set(&self) -> bool {
        !self.reasons().is_empty()
    }

    /// Waits until it must stop.
    pub async fn wait(&self) {
        self.until_so(|it| !it.is_empty()).await;
    }

    /// Waits until this reason is among the others: [`StopReason::Done`] is the end.
    pub async fn until(&self, reason: StopReason) {
        self.until_so(|it| it.contains(reason)).await;
    }

    async fn until_so(&self, is_so: impl Fn(StopReasons) -> bool) {
        loop {
            // Registered before the look, so that a change in between is not missed.
            let changed = self.0.changed.notified();
            if is_so(self.reasons()) {
                return;
            }
            changed.await;
        }
    }
}
