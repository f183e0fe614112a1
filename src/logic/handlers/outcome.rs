//! The outcome of one call of a handler, and its effect on the handler.
//!
//! The contract is `tests/vectors/execution-outcomes.json`. Before: `handling/run.rs`. After: `progress/`.

use std::{fmt, time::Duration};

use serde_json::Value;

use super::handler::{ErrorsMode, Handler};
use crate::logic::text::python_text;

/// The errors of exhausted limits; the names are Kopf's.
pub(super) const TIMEOUT_ERROR: &str = "HandlerTimeoutError";
pub(super) const RETRIES_ERROR: &str = "HandlerRetriesError";
/// Raised by scripts for a permanent failure.
const PERMANENT_ERROR: &str = "PermanentError";
/// Denies an admission request, and is therefore never retried.
const ADMISSION_ERROR: &str = "AdmissionError";

/// The end of the call itself, as the scripting side reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEnd {
    /// The script returned; `None` is nil / `()`.
    Returned(Option<Value>),
    /// The script returned a map whose keys are not all strings, as items: only index handlers do.
    Keyed(Vec<(Value, Value)>),
    /// The script raised an error.
    Raised(Raised),
}

/// An error raised by a script function.
#[derive(Clone, Debug, PartialEq)]
pub struct Raised {
    /// The kind of the error.
    pub kind: RaisedKind,
    /// The message; may be empty.
    pub message: String,
    /// File, line, source line and stack, for logs; several lines.
    pub trace: Option<String>,
}

impl Raised {
    /// Returns an error of the operator, not of the script.
    pub fn of_host(message: impl Into<String>) -> Self {
        let kind = RaisedKind::Arbitrary("HostError".into());
        Raised { kind, message: message.into(), trace: None }
    }

    /// Returns the error of a handler whose changes the server rejects.
    pub fn rejected(error: impl fmt::Display) -> Self {
        Raised::of_host(format!("the server rejected its changes: {error}"))
    }
}

/// The kind of an error, which determines how the handler is treated.
#[derive(Clone, Debug, PartialEq)]
pub enum RaisedKind {
    /// `kopf.TemporaryError`: retry after the delay; `None` is as soon as possible.
    Temporary(Option<Duration>),
    /// The operator ended the call at a limit: treated as a temporary error, and logged with the location of the call.
    Aborted(Option<Duration>),
    /// `kopf.PermanentError`: never retry.
    Permanent,
    /// `kopf.AdmissionError`: denies a request with this HTTP status; elsewhere the same as a permanent error.
    Admission(u16),
    /// Any other error; the class is for messages.
    Arbitrary(String),
    /// Sub-handlers are not finished yet; the delay until the first of them can continue.
    Unfinished(Option<Duration>),
}

impl Raised {
    /// Returns the trace, or else the location of the handler's declaration.
    pub fn trace_from(&self, location: &str) -> Option<String> {
        let declared = || (!location.is_empty()).then(|| format!("{location}: {}", self.message));
        self.trace.clone().or_else(declared)
    }
}

/// The effect of one attempt on its handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether the handler is finished.
    pub last: bool,
    /// If not finished: the pause before the next attempt; `None` is as soon as possible.
    pub delay: Option<Duration>,
    /// The result, which is stored in the status.
    pub result: Option<Value>,
    /// The map of an index handler whose keys are not all strings, instead of the result.
    pub entries: Option<Vec<(Value, Value)>>,
    /// The class and message of the error, if the attempt did not succeed.
    pub error: Option<Failure>,
    /// Ids of sub-handlers seen in this attempt.
    pub subrefs: Vec<String>,
}

/// The error of an attempt that did not succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Such as `TemporaryError`, `HandlerTimeoutError`, or the class of the script's error.
    pub class: String,
    /// The message as stored; may be empty.
    pub message: String,
    /// The HTTP status of an [`RaisedKind::Admission`] error.
    pub code: Option<u16>,
}

/// A log line of the object or the activity.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// The level at which it is logged.
    pub level: LogLevel,
    /// The message, to which the logger adds the object.
    pub text: String,
    /// Whether the trace of the script is added.
    pub with_trace: bool,
}

/// Levels of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for developers.
    Debug,
    /// Normal operation.
    Info,
    /// May need attention.
    Warning,
    /// Something failed.
    Error,
}

/// The progress of a handler before one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Attempts made before this one.
    pub retries: u64,
    /// Time since the first attempt was due.
    pub runtime: Duration,
}

impl Outcome {
    /// Returns whether the script requested a permanent failure.
    pub fn is_permanent(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|it| [PERMANENT_ERROR, ADMISSION_ERROR].contains(&&*it.class))
    }
}

/// Returns the line that begins every attempt, also one that [`before`] then prevents.
pub fn invoked(handler: &Handler) -> LogLine {
    line(LogLevel::Debug, format!("{handler} is invoked."))
}

/// Returns the failure of a call whose limits are already exhausted.
pub fn before(handler: &Handler, effort: Effort) -> Option<(Outcome, LogLine)> {
    let limits = &handler.limits;
    if limits.timeout.is_some_and(|timeout| effort.runtime >= timeout) {
        return Some(timed_out(handler, effort.runtime));
    }
    if limits.retries.is_some_and(|retries| effort.retries >= retries) {
        let text = format!("{handler} has exceeded {} retries.", effort.retries);
        return Some(exhausted(RETRIES_ERROR, text));
    }
    None
}

/// Returns how long a call may take: until the handler's timeout. `None`: there is no timeout.
pub fn time_left(handler: &Handler, effort: Effort) -> Option<Duration> {
    handler.limits.timeout.map(|it| it.saturating_sub(effort.runtime))
}

/// Returns the failure of a handler at its timeout, before or during a call.
pub fn timed_out(handler: &Handler, runtime: Duration) -> (Outcome, LogLine) {
    let runtime = python_text::interval(runtime);
    exhausted(TIMEOUT_ERROR, format!("{handler} has timed out after {runtime}."))
}

/// Returns the outcome of a call. The runtime is the one after the call, since calls take time.
///
/// A failure whose retry would exceed the limits is permanent at once.
pub fn after(
    handler: &Handler,
    ended: CallEnd,
    effort: Effort,
    default_backoff: Duration,
) -> (Outcome, LogLine) {
    let succeeded = |outcome| {
        // Reconcile handlers are called for each change of each child.
        let level = if handler.is_reconciler() { LogLevel::Debug } else { LogLevel::Info };
        let line = line(level, format!("{handler} succeeded."));
        (Outcome { last: true, ..outcome }, line)
    };
    let Raised { kind, message, .. } = match ended {
        CallEnd::Returned(result) => return succeeded(Outcome { result, ..Outcome::default() }),
        CallEnd::Keyed(entries) => {
            return succeeded(Outcome { entries: Some(entries), ..Outcome::default() });
        }
        CallEnd::Raised(raised) => raised,
    };
    match kind {
        RaisedKind::Unfinished(delay) => unfinished(handler, delay),
        RaisedKind::Temporary(delay) => {
            temporary(handler, Failure::new("TemporaryError", message), delay, effort)
        }
        RaisedKind::Aborted(delay) => {
            let failure = Failure::new("TemporaryError", message);
            let (outcome, line) = temporary(handler, failure, delay, effort);
            (outcome, LogLine { with_trace: true, ..line })
        }
        RaisedKind::Permanent => permanent(handler, Failure::new(PERMANENT_ERROR, message)),
        RaisedKind::Admission(code) => {
            let failure = Failure::new(ADMISSION_ERROR, message);
            permanent(handler, Failure { code: Some(code), ..failure })
        }
        RaisedKind::Arbitrary(class) => match class.as_str() {
            ADMISSION_ERROR => permanent(handler, Failure::new(class, message)),
            // A script may raise the errors of limits itself; their messages are their log lines.
            TIMEOUT_ERROR | RETRIES_ERROR => exhausted(&class, message),
            _ => arbitrary(handler, Failure::new(class, message), effort, default_backoff),
        },
    }
}

/// Returns the outcome of a call with unfinished sub-handlers. Limits do not apply: the parent is called as often as these need.
fn unfinished(handler: &Handler, delay: Option<Duration>) -> (Outcome, LogLine) {
    // The message is part of the stored state.
    let failure = Failure::new("HandlerChildrenRetry", "None");
    let text = format!("{handler} has unfinished sub-handlers. Will retry soon.");
    (retry(failure, delay), line(LogLevel::Debug, text))
}

fn temporary(
    handler: &Handler,
    failure: Failure,
    delay: Option<Duration>,
    effort: Effort,
) -> (Outcome, LogLine) {
    let text = format!("{handler} failed temporarily");
    match limit(handler, effort, delay.unwrap_or_default()) {
        Some(Limit::Timeout(timeout)) => exhausted(
            TIMEOUT_ERROR,
            format!("{text} but will time out after {timeout} seconds: {failure}"),
        ),
        Some(Limit::Retries(retries)) => {
            exhausted(RETRIES_ERROR, format!("{text} but will exceed {retries} retries: {failure}"))
        }
        None => {
            let line = line(LogLevel::Error, format!("{text}: {failure}"));
            (retry(failure, delay), line)
        }
    }
}

fn permanent(handler: &Handler, failure: Failure) -> (Outcome, LogLine) {
    let text = format!("{handler} failed permanently: {failure}");
    (fail(failure), line(LogLevel::Error, text))
}

fn arbitrary(
    handler: &Handler,
    failure: Failure,
    effort: Effort,
    default_backoff: Duration,
) -> (Outcome, LogLine) {
    let text = format!("{handler} failed with an exception and will");
    let backoff = handler.limits.backoff.unwrap_or(default_backoff);
    let (outcome, line) = match (handler.errors(), limit(handler, effort, backoff)) {
        (ErrorsMode::Ignored, _) => {
            let line = line(LogLevel::Error, format!("{text} ignore it: {failure}"));
            (Outcome { last: true, ..Outcome::default() }, line)
        }
        (ErrorsMode::Permanent, _) => {
            let line = line(LogLevel::Error, format!("{text} stop now: {failure}"));
            (fail(failure), line)
        }
        (ErrorsMode::Temporary, Some(Limit::Timeout(timeout))) => {
            let why = format!("it would time out in {timeout} seconds on the next attempt");
            exhausted(TIMEOUT_ERROR, format!("{text} stop now ({why}): {failure}"))
        }
        (ErrorsMode::Temporary, Some(Limit::Retries(retries))) => {
            let why = format!("it would exceed {retries} retries on the next attempt");
            exhausted(RETRIES_ERROR, format!("{text} stop now ({why}): {failure}"))
        }
        (ErrorsMode::Temporary, None) => {
            let pause = python_text::seconds(backoff);
            let text = format!("{text} try again in {pause} seconds: {failure}");
            (retry(failure, Some(backoff)), line(LogLevel::Error, text))
        }
    };
    (outcome, LogLine { with_trace: true, ..line })
}

/// The limit that the next attempt would exceed.
enum Limit {
    /// The timeout of the handler, formatted for messages.
    Timeout(String),
    Retries(u64),
}

fn limit(handler: &Handler, effort: Effort, delay: Duration) -> Option<Limit> {
    let next = effort.runtime.saturating_add(delay);
    if let Some(timeout) = handler.limits.timeout
        && next >= timeout
    {
        return Some(Limit::Timeout(python_text::seconds(timeout)));
    }
    let retries = handler.limits.retries?;
    (effort.retries.saturating_add(1) >= retries).then_some(Limit::Retries(retries))
}

/// Returns a permanent failure whose log line is also the stored message.
fn exhausted(class: &str, text: String) -> (Outcome, LogLine) {
    (fail(Failure::new(class, text.as_str())), line(LogLevel::Error, text))
}

fn fail(failure: Failure) -> Outcome {
    Outcome { last: true, error: Some(failure), ..Outcome::default() }
}

fn retry(failure: Failure, delay: Option<Duration>) -> Outcome {
    Outcome { last: false, delay, error: Some(failure), ..Outcome::default() }
}

fn line(level: LogLevel, text: String) -> LogLine {
    LogLine { level, text, with_trace: false }
}

impl Failure {
    fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Failure { class: class.into(), message: message.into(), code: None }
    }

    /// Returns the message, or the class of an error without one as Kopf shows it.
    pub fn described(&self) -> String {
        match (self.message.as_str(), self.class.as_str()) {
            ("", ADMISSION_ERROR) => format!("{ADMISSION_ERROR}('')"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    /// Formats the error for log lines: without a message, by its class.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}()", self.class)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl LogLevel {
    /// Returns the number of the level, as in settings: 10 is debug, 40 is error.
    pub fn number(self) -> u32 {
        match self {
            LogLevel::Debug => 10,
            LogLevel::Info => 20,
            LogLevel::Warning => 30,
            LogLevel::Error => 40,
        }
    }
}
