//! Errors that functions report to the script.

use rhai::{EvalAltResult, Position};

/// A result, or the error that Rhai reports to the script.
pub type Fallible<T> = Result<T, Box<EvalAltResult>>;

/// Returns a runtime error with this message and without a place, which Rhai adds. Scripts can catch it.
pub fn problem(message: impl Into<String>) -> Box<EvalAltResult> {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}
