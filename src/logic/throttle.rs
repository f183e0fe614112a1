//! Keeps an object from repeating an unexpected error without a pause.
//!
//! These are errors of the framework or of the API, not of handlers. The first one pauses the object shortly, each further
//! one longer; a cycle without errors starts the pauses over. Times are durations since any fixed moment.
//!
//! The contract is `tests/vectors/throttling.json`.

use std::time::Duration;

use super::{
    outcome::{LogLevel, LogLine},
    python_text,
};

/// What one object remembers of its errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Errors since the last success.
    errors: usize,
    /// The pause that is not over yet.
    pause: Option<Pause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    length: Duration,
    until: Duration,
}

impl Throttle {
    /// How long to sleep before the next event may be processed; `None` if there is no pause.
    ///
    /// The sleep ends early when a newer event arrives. Afterwards, ask [`Throttle::rested`].
    pub fn remaining(&self, now: Duration) -> Option<Duration> {
        self.pause.map(|it| it.until.saturating_sub(now))
    }

    /// The length of the present pause, if it is not over.
    pub fn pause(&self) -> Option<Duration> {
        self.pause.map(|it| it.length)
    }

    /// Ends the pause if its time is over. `None`: it is not, and the event at hand must be skipped for a newer one.
    pub fn rested(&mut self, now: Duration) -> Option<LogLine> {
        self.pause.take_if(|it| it.until <= now)?;
        let text = "Throttling is over. Switching back to normal operations.".to_owned();
        Some(LogLine { level: LogLevel::Info, text, with_trace: false })
    }

    /// A cycle ended with an unexpected error: begins a pause. Without delays there are no pauses and no lines.
    pub fn failed(&mut self, delays: &[Duration], now: Duration, error: &str) -> Option<LogLine> {
        let delay = *delays.get(self.errors).or(delays.last())?;
        self.errors += 1;
        self.pause = Some(Pause { length: delay, until: now.saturating_add(delay) });
        let delay = python_text::seconds(delay);
        let text = format!("Throttling for {delay} seconds due to an unexpected error: {error}");
        Some(LogLine { level: LogLevel::Error, text, with_trace: true })
    }

    /// A cycle ended well.
    pub fn succeeded(&mut self) {
        *self = Throttle::default();
    }
}
