//! The stop flag of one daemon or timer: the kwarg `stopped`.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::sync::Notify;

use crate::logic::stopping::{StopReason, StopReasons};

/// Set by the operator, seen by the script. Clones share it. One costs less than a hundred bytes: there may be many thousands.
#[derive(Clone, Debug, Default)]
pub struct Stopped(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    reasons: AtomicU8,
    changed: Notify,
}

impl Stopped {
    /// Adds a reason; wakes everybody who waits.
    pub fn set(&self, reason: StopReason) {
        self.0.reasons.fetch_or(reason as u8, Ordering::AcqRel);
        self.0.changed.notify_waiters();
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
        loop {
            // Registered before the look, so that a change in between is not missed.
            let changed = self.0.changed.notified();
            if self.is_set() {
                return;
            }
            changed.await;
        }
    }
}
