//! Throttles the handling of an object after unexpected errors.
//!
//! These are errors of the framework or of the API, not of handlers. The first one pauses the object briefly, each further one
//! longer; a cycle without errors resets the pauses. Times are durations since any fixed moment.
//!
//! The contract is `tests/vectors/throttling.json`.

use std::time::Duration;

use crate::logic::{
    handlers::outcome::{LogLevel, LogLine},
    text::python_text,
};

/// The errors of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Errors since the last success.
    errors: usize,
    /// The current pause, if it has not ended yet.
    pause: Option<ThrottlePause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThrottlePause {
    length: Duration,
    until: Duration,
}

impl Throttle {
    /// Returns how long to sleep before the next event may be processed; `None` if there is no pause.
    ///
    /// The sleep ends early when a newer event arrives. Afterwards, call [`Throttle::rested`].
    pub fn remaining(&self, now: Duration) -> Option<Duration> {
        self.pause.map(|it| it.until.saturating_sub(now))
    }

    /// Returns the length of the current pause, if it has not ended.
    pub fn pause(&self) -> Option<Duration> {
        self.pause.map(|it| it.length)
    }

    /// Ends the pause if its time is over. `None`: it is not, and the current event must be skipped in favor of a newer one.
    pub fn rested(&mut self, now: Duration) -> Option<LogLine> {
        self.pause.take_if(|it| it.until <= now)?;
        let text = "Throttling is over. Switching back to normal operations.".to_owned();
        Some(LogLine { level: LogLevel::Info, text, with_trace: false })
    }

    /// Records a cycle that ended with an unexpected error, and begins a pause. Without `delays` there are no pauses and no log
    /// lines.
    pub fn failed(&mut self, delays: &[Duration], now: Duration, error: &str) -> Option<LogLine> {
        let delay = *delays.get(self.errors).or(delays.last())?;
        self.errors += 1;
        self.pause = Some(ThrottlePause { length: delay, until: now.saturating_add(delay) });
        let delay = python_text::seconds(delay);
        let text = format!("Throttling for {delay} seconds due to an unexpected error: {error}");
        Some(LogLine { level: LogLevel::Error, text, with_trace: true })
    }

    /// Records a cycle that ended without errors.
    pub fn succeeded(&mut self) {
        *self = Throttle::default();
    }
}
