//! How one call of a handler ended, and what follows for the handler.
//!
//! The contract is `tests/vectors/execution-outcomes.json`. Before: `handling/run.rs`. After: `progress.rs`.

use std::time::Duration;

use serde_json::Value;

/// How the call itself ended, as the script's side reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// It returned; `None` is nil / `()`.
    Returned(Option<Value>),
    /// It raised.
    Raised(Raised),
}

/// An error that left a script function.
#[derive(Clone, Debug, PartialEq)]
pub struct Raised {
    /// What the handler meant by it.
    pub kind: RaisedKind,
    /// The text; may be empty.
    pub message: String,
    /// File, line, source line and stack, for logs; several lines.
    pub trace: Option<String>,
}

/// What a raised error asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum RaisedKind {
    /// `kopf.TemporaryError`: retry after the delay; `None` is as soon as possible.
    Temporary(Option<Duration>),
    /// `kopf.PermanentError`: never again.
    Permanent,
    /// Any other error; the class is for messages.
    Arbitrary(String),
    /// Sub-handlers are not finished yet; the delay until the first of them can go on.
    Unfinished(Option<Duration>),
}

/// What one attempt means for its handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether the handler is finished.
    pub last: bool,
    /// When not finished: the pause before the next attempt; `None` is as soon as possible.
    pub delay: Option<Duration>,
    /// To be stored in the status.
    pub result: Option<Value>,
    /// The error's class and message, if it did not succeed.
    pub error: Option<Failure>,
    /// Ids of sub-handlers seen in this attempt.
    pub subrefs: Vec<String>,
}

/// Why an attempt did not succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Such as `TemporaryError`, `HandlerTimeoutError`, or the script's own class.
    pub class: String,
    /// As it is stored; may be empty.
    pub message: String,
}

/// A line for the log of the object or the activity.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// How bad.
    pub level: LogLevel,
    /// The line.
    pub text: String,
    /// Whether the script's trace belongs to it.
    pub with_trace: bool,
}

/// Levels of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// Normal operation.
    Info,
    /// Worth a look.
    Warning,
    /// Something failed.
    Error,
}
