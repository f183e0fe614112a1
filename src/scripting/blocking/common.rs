//! The state that the calls of one script share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{kept::KeptTrees, ledger::Ledger, turn::Turns};
use crate::settings::Sandbox;

/// Operations that count as a second of [`Budget::Operations`]: about what an unoptimized build does in one.
const OPERATIONS_PER_SECOND: u128 = 10_000_000;

/// How long a call may compute. Waiting does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// Running time, for production.
    Time(Duration),
    /// The number of operations that counts as this time, for tests: the same on every machine.
    Operations(Duration),
}

/// State that the calls of one script share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) budget: Budget,
    pub(super) turns: Arc<Turns>,
    pub(super) ledger: Ledger,
    /// Maximum bytes of a value that the host stores, such as a result or a patch, as JSON.
    pub(super) result_size: usize,
    /// Maximum bytes of a string, and of a value that is passed to the host, as JSON.
    pub(super) string_size: usize,
    pub(super) kept: KeptTrees,
    /// How often the script was restarted: earlier calls have to end then. `fresh` wakes those that wait.
    restarts: AtomicU64,
    fresh: watch::Sender<()>,
}

impl Budget {
    /// Returns the limit: the time, or the time that the operations count as.
    pub(super) fn limit(self) -> Duration {
        match self {
            Budget::Time(limit) | Budget::Operations(limit) => limit,
        }
    }
}

impl Common {
    /// Creates the shared state of a script with these limits.
    pub(super) fn new(budget: Budget, turns: Arc<Turns>, ledger: Ledger, limits: &Sandbox) -> Self {
        Common {
            budget,
            turns,
            ledger,
            result_size: limits.result_size,
            string_size: limits.string_size,
            kept: KeptTrees::default(),
            restarts: AtomicU64::new(0),
            fresh: watch::Sender::default(),
        }
    }

    /// Returns how often the script was restarted.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Aborts all current calls: computing ones at their next operation, waiting ones at once.
    pub(super) fn restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.fresh.send_replace(());
    }

    /// Waits until the script has been restarted more often than `before`.
    pub(super) async fn restarted(&self, before: u64) {
        let mut fresh = self.fresh.subscribe();
        // Later changes wake the wait below.
        if self.restarts() == before {
            drop(fresh.changed().await);
        }
    }
}

/// Returns how many operations count as this time.
pub(super) fn operations_in(time: Duration) -> u64 {
    u64::try_from(time.as_micros() * OPERATIONS_PER_SECOND / 1_000_000).unwrap_or(u64::MAX)
}
