//! Moments, and the reading and writing of time stamps.

use std::time::Duration;

use jiff::Timestamp;

/// When a decision is made.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// As the server stamps.
    pub(crate) stamp: String,
    /// The same as a number; it may lag by the part of a second that stamps do not have.
    pub(crate) now: Timestamp,
    /// How long the step of the object has been going on.
    pub(crate) in_step: Duration,
}

impl Moment {
    pub(crate) fn new(stamp: String, in_step: Duration) -> Self {
        let now = stamp.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        Self { stamp, now, in_step }
    }

    /// Seconds since a stamp; `None` if it is none.
    pub(crate) fn since(&self, stamp: &str) -> Option<i64> {
        let then: Timestamp = stamp.parse().ok()?;
        Some(self.now.as_second().saturating_sub(then.as_second()))
    }

    /// Waits so long for a number of seconds after a stamp; `None` if they are over.
    pub(crate) fn until(&self, stamp: &str, seconds: i64) -> Option<Duration> {
        let left = seconds.saturating_sub(self.since(stamp)?);
        u64::try_from(left).ok().filter(|it| *it > 0).map(Duration::from_secs)
    }
}

/// Reads `1500ms`, `30s`, `2m`, `1h` or a plain number of seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let number: f64 = number.parse().ok()?;
    let unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}
