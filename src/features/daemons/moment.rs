//! A moment stored for each daemon, or for each object with daemons.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The value for no moment yet.
const NEVER: u64 = u64::MAX;

/// A moment on the clock of all daemons, if it was set.
#[derive(Debug)]
pub(super) struct AtomicMoment(AtomicU64);

impl AtomicMoment {
    /// Sets the moment, also if it was set before.
    pub(super) fn set(&self, moment: Duration) {
        self.0.store(nanos(moment), Ordering::Relaxed);
    }

    /// Sets the moment unless it was set before.
    pub(super) fn set_once(&self, moment: Duration) {
        let (before, now) = (NEVER, nanos(moment));
        // The first value stays.
        let _known = self.0.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the moment, if it was set.
    pub(super) fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos != NEVER).then(|| Duration::from_nanos(nanos))
    }
}

impl Default for AtomicMoment {
    fn default() -> Self {
        AtomicMoment(AtomicU64::new(NEVER))
    }
}

/// Converts to nanoseconds; saturates after five centuries.
fn nanos(moment: Duration) -> u64 {
    u64::try_from(moment.as_nanos()).unwrap_or(NEVER).min(NEVER - 1)
}
