//! The stages of stopping a daemon, and when each begins.
//!
//! Step by step while the object has events; all stages in a row if no more events are expected.

use std::time::Duration;

use super::{StopReason, StopReasons};
use crate::logic::{
    handlers::{
        handler::Handler,
        outcome::{LogLevel, LogLine},
    },
    text::python_text,
};
use crate::settings::BackgroundSettings;

/// The time limits for a handler to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTimeouts {
    /// Time for a graceful exit.
    pub backoff: Option<Duration>,
    /// Time for a forced exit after that; `None`: it is neither cancelled nor abandoned.
    pub timeout: Option<Duration>,
    /// How often to check if there is no timeout.
    pub polling: Duration,
}

/// The next action for a daemon that has not ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoppingStage {
    /// The reason to add; [`StopReason::DaemonCancelled`] also means to cancel it.
    pub mark: Option<StopReason>,
    /// The log line for its object.
    pub line: Option<LogLine>,
    /// The time until the next stage; `None`: nothing waits for it any more.
    pub delay: Option<Duration>,
}

impl StopTimeouts {
    /// Returns the times for a handler. Timers have only the polling interval.
    pub fn with(handler: &Handler, settings: &BackgroundSettings) -> Self {
        let own = &handler.background;
        StopTimeouts {
            backoff: own.cancellation_backoff,
            timeout: own.cancellation_timeout,
            polling: own
                .cancellation_polling
                .filter(|it| !it.is_zero())
                .unwrap_or(settings.cancellation_polling),
        }
    }
}

/// Returns the stage of a daemon that was requested to stop `age` ago, for `reasons`, and still runs.
pub fn step(
    handler: &Handler,
    timeouts: StopTimeouts,
    reasons: StopReasons,
    age: Duration,
) -> StoppingStage {
    let once = |mark, line: fn(&Handler) -> LogLine, delay| {
        let is_new = !reasons.contains(mark);
        StoppingStage { mark: is_new.then_some(mark), line: is_new.then(|| line(handler)), delay }
    };
    let backoff = timeouts.backoff.unwrap_or_default();
    if age < backoff {
        return once(StopReason::DaemonSignalled, signalled, Some(backoff.saturating_sub(age)));
    }
    let Some(timeout) = timeouts.timeout else {
        let delay = timeouts.polling;
        let seconds = python_text::seconds(delay);
        let text = format!("{handler} is still exiting. The next check is in {seconds} seconds.");
        return StoppingStage { mark: None, line: Some(debug(text)), delay: Some(delay) };
    };
    let end = backoff.saturating_add(timeout);
    if age < end {
        return once(StopReason::DaemonCancelled, cancelled, Some(end.saturating_sub(age)));
    }
    once(StopReason::DaemonAbandoned, abandoned, None)
}

/// Returns all stages for a daemon that did not stop at once: to be applied in order until it ends.
pub fn linear(handler: &Handler, timeouts: StopTimeouts) -> Vec<StoppingStage> {
    let stage = |mark, line, delay| StoppingStage { mark: Some(mark), line: Some(line), delay };
    let backoff =
        timeouts.backoff.map(|it| stage(StopReason::DaemonSignalled, signalled(handler), Some(it)));
    let timeout =
        timeouts.timeout.map(|it| stage(StopReason::DaemonCancelled, cancelled(handler), Some(it)));
    let end = stage(StopReason::DaemonAbandoned, abandoned(handler), None);
    backoff.into_iter().chain(timeout).chain([end]).collect()
}

/// Returns the log line about a daemon that ended as soon as it was requested to.
pub fn graceful(handler: &Handler) -> LogLine {
    debug(format!("{handler} has exited gracefully."))
}

fn signalled(handler: &Handler) -> LogLine {
    debug(format!("{handler} is signalled to exit gracefully."))
}

fn cancelled(handler: &Handler) -> LogLine {
    debug(format!("{handler} is signalled to exit by force."))
}

fn abandoned(handler: &Handler) -> LogLine {
    let text = format!("{handler} did not exit in time. Leaving it orphaned.");
    LogLine { level: LogLevel::Warning, text, with_trace: false }
}

fn debug(text: String) -> LogLine {
    LogLine { level: LogLevel::Debug, text, with_trace: false }
}
