//! Timestamps and durations.

use std::time::Duration;

use jiff::Timestamp;

/// The time of a decision.
#[derive(Clone, Debug)]
pub(crate) struct DecisionTime {
    /// As a timestamp of the server.
    pub(crate) stamp: String,
    /// The same as a number. It may lag by the fraction of a second that timestamps do not have.
    pub(crate) now: Timestamp,
    /// Time since the current step of the object has started.
    pub(crate) in_step: Duration,
}

impl DecisionTime {
    pub(crate) fn new(stamp: String, in_step: Duration) -> Self {
        let now = stamp.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        Self { stamp, now, in_step }
    }

    /// Returns the seconds since a timestamp; `None` if it is invalid.
    pub(crate) fn since(&self, stamp: &str) -> Option<i64> {
        let then: Timestamp = stamp.parse().ok()?;
        Some(self.now.as_second().saturating_sub(then.as_second()))
    }

    /// Returns the time left until `seconds` after a timestamp; `None` if it is over.
    pub(crate) fn until(&self, stamp: &str, seconds: i64) -> Option<Duration> {
        let left = seconds.saturating_sub(self.since(stamp)?);
        u64::try_from(left).ok().filter(|it| *it > 0).map(Duration::from_secs)
    }
}

/// Parses `1500ms`, `30s`, `2m`, `1h` or a plain number of seconds.
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
