//! How long a call has been running, not counting its pauses.

use std::time::Duration;

pub(super) use crate::scripting::inline::RealInstant;

/// Running time without the pauses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    before: Duration,
    since: Option<RealInstant>,
}

impl Stopwatch {
    /// Returns the running time until now.
    pub(super) fn elapsed(self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |it| it.elapsed())
    }

    /// Returns the running time until the last pause.
    pub(super) fn before(self) -> Duration {
        self.before
    }

    /// Subtracts this much from the running time until the last pause.
    pub(super) fn put_back(self, by: Duration) -> Self {
        Stopwatch { before: self.before.saturating_sub(by), ..self }
    }

    /// Returns the stopwatch, paused: it keeps the running time until now.
    pub(super) fn pause(self) -> Self {
        Stopwatch { before: self.elapsed(), since: None }
    }

    /// Starts the stopwatch again.
    pub(super) fn resume(self) -> Self {
        Stopwatch { since: Some(RealInstant::now()), ..self }
    }
}
