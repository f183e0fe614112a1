//! The progress of one handler on one object.
//!
//! The contract is `tests/vectors/progress-records.json`. The progress of all handlers together is in `logic/change/state/`.
//! Before: the [`Outcome`]s of calls. After: a patch of the object.

mod stamp;
mod storage;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use kopf_json::values;
use serde_json::{Map, Value};

pub use self::stamp::{format_stamp, parse_stamp, touch_stamp};
pub use self::storage::{any, fetch, mark, purge, store, touch};
use super::outcome::Outcome;
use crate::logic::object::corrupt::CorruptState;

/// A start further in the future was written by a clock that was ahead; clocks of replicas may differ a little.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(5);
/// Maximum length of a stored message: annotations are limited, and the log has the full message.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The progress of one handler. Stored until its cause is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressRecord {
    /// When the handler was first selected; not when it was first called.
    pub started: Timestamp,
    /// When it finished; set once.
    pub stopped: Option<Timestamp>,
    /// Not to be called before this time.
    pub delayed: Option<Timestamp>,
    /// The reason it is called for, as a string: other versions may have other reasons. `None` matches any.
    pub purpose: Option<String>,
    /// The number of attempts so far, which is also the number of the next one.
    pub retries: u64,
    /// Whether it has finished successfully.
    pub success: bool,
    /// Finished with an error.
    pub failure: bool,
    /// The message of the last error.
    pub message: Option<String>,
    /// Ids of all sub-handlers ever declared, on all levels below; sorted.
    pub subrefs: Vec<String>,
}

impl ProgressRecord {
    /// Creates the record of a handler that was never called.
    pub fn new(now: Timestamp, purpose: Option<&str>) -> Self {
        ProgressRecord {
            started: now,
            stopped: None,
            delayed: None,
            purpose: purpose.map(str::to_owned),
            retries: 0,
            success: false,
            failure: false,
            message: None,
            subrefs: Vec::new(),
        }
    }

    /// Reads the result of [`fetch`] for the handler `id`.
    ///
    /// Absent fields get their defaults; unknown ones are ignored. Only timestamps can be invalid. If the start is in the future,
    /// the clock that wrote it was ahead: then the handler starts now, and its delay keeps its original length.
    pub fn parse(id: &str, stored: &Value, now: Timestamp) -> Result<Self, CorruptState> {
        let Some(stored) = stored.as_object() else {
            let place = format!("the progress of handler '{id}'");
            return Err(CorruptState::Shape { place, expected: "map" });
        };
        let stamp = |field: &'static str| match stored.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().and_then(parse_stamp).map(Some).ok_or_else(|| {
                CorruptState::Timestamp { id: id.to_owned(), field, text: value.to_string() }
            }),
        };
        let text = |field: &str| stored.get(field).and_then(Value::as_str).map(str::to_owned);
        let flag = |field: &str| stored.get(field).is_some_and(values::truthy);
        let subrefs = stored.get("subrefs").and_then(Value::as_array).into_iter().flatten();
        let started = stamp("started")?.unwrap_or(now);
        let ahead = Some(started.duration_since(now)).filter(|it| *it > AHEAD_MAX);
        let ahead = ahead.unwrap_or_default();
        let moved = |it: Timestamp| it.saturating_sub(ahead).unwrap_or(it);
        Ok(ProgressRecord {
            started: moved(started),
            stopped: stamp("stopped")?,
            delayed: stamp("delayed")?.map(moved),
            purpose: text("purpose").filter(|it| !it.is_empty()),
            retries: stored.get("retries").and_then(Value::as_u64).unwrap_or_default(),
            success: flag("success"),
            failure: flag("failure"),
            message: text("message"),
            subrefs: sorted(subrefs.filter_map(Value::as_str).map(str::to_owned)),
        })
    }

    /// Returns whether this record has earlier times than the stored one it was read from.
    pub fn is_moved(&self, stored: &Value) -> bool {
        let started = stored.get("started").and_then(Value::as_str).and_then(parse_stamp);
        started.is_some_and(|it| it > self.started)
    }

    /// Returns the stored form. Absent fields are nulls if `verbose`, otherwise left out.
    pub fn to_json(&self, verbose: bool) -> Value {
        let stamp = |it: Timestamp| Value::from(format_stamp(it));
        let subrefs = Some(&self.subrefs).filter(|it| !it.is_empty());
        let fields = [
            ("started", Some(stamp(self.started))),
            ("stopped", self.stopped.map(stamp)),
            ("delayed", self.delayed.map(stamp)),
            ("purpose", self.purpose.clone().map(Value::from)),
            ("retries", Some(self.retries.into())),
            ("success", Some(self.success.into())),
            ("failure", Some(self.failure.into())),
            ("message", self.message.clone().map(Value::from)),
            ("subrefs", subrefs.cloned().map(Value::from)),
        ];
        let kept = fields.into_iter().filter(|(_, value)| verbose || value.is_some());
        Value::Object(
            kept.map(|(key, value)| (key.to_owned(), value.unwrap_or_default()))
                .collect::<Map<_, _>>(),
        )
    }

    /// Returns the value of an annotation.
    pub fn format(&self, verbose: bool) -> String {
        values::encode(&self.to_json(verbose))
    }

    /// Returns the record after one more attempt, which ended at `now`.
    ///
    /// Every attempt is counted, sets or removes the delay and the message, and adds sub-handlers. The last one also finishes the
    /// record: as a success, or as a failure if there is an error.
    #[must_use]
    pub fn transition(&self, outcome: &Outcome, now: Timestamp) -> Self {
        let subrefs = self.subrefs.iter().chain(&outcome.subrefs).cloned();
        ProgressRecord {
            started: self.started,
            stopped: self.stopped.or(outcome.last.then_some(now)),
            delayed: outcome.delay.map(|it| later(now, it)),
            purpose: self.purpose.clone(),
            retries: self.retries.saturating_add(1),
            success: outcome.last && outcome.error.is_none(),
            failure: outcome.last && outcome.error.is_some(),
            message: outcome.error.as_ref().map(|it| shortened(&it.message, MESSAGE_BYTES_MAX)),
            subrefs: sorted(subrefs),
        }
    }

    /// Truncates the message to this number of bytes; `0` removes it.
    pub fn shorten_message(&mut self, bytes: usize) {
        self.message = self.message.take().filter(|_| bytes > 0).map(|it| shortened(&it, bytes));
    }

    /// Returns whether the handler has finished.
    pub fn finished(&self) -> bool {
        self.success || self.failure
    }

    /// Returns whether the handler waits for its delay.
    pub fn sleeping(&self, now: Timestamp) -> bool {
        !self.finished() && self.delayed.is_some_and(|it| it > now)
    }

    /// Returns whether the handler is to be called now.
    pub fn awakened(&self, now: Timestamp) -> bool {
        !self.finished() && !self.sleeping(now)
    }

    /// Returns how long until the handler can be called; zero if it can be called now or is finished.
    pub fn delay(&self, now: Timestamp) -> Duration {
        let delay = self.delayed.map(|it| it.duration_since(now)).unwrap_or_default();
        Duration::try_from(delay).unwrap_or_default()
    }

    /// Returns the time since the start; zero if the start is in the future.
    pub fn runtime(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.started)).unwrap_or_default()
    }
}

/// Adds a delay, rounded to microseconds like stored stamps. A sum beyond the calendar is clamped to its end.
fn later(now: Timestamp, delay: Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    let delay = delay.round(Unit::Microsecond).unwrap_or(delay);
    now.saturating_add(delay).unwrap_or(Timestamp::MAX)
}

/// Returns the message, or as much of its beginning as may be stored.
fn shortened(message: &str, bytes_max: usize) -> String {
    if message.len() <= bytes_max {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(bytes_max.saturating_sub("...".len()));
    message.get(..end).unwrap_or_default().to_owned() + "..."
}

fn sorted(ids: impl Iterator<Item = String>) -> Vec<String> {
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests;
