//! Limits and analyses for Rhai scripts that others have written.
//!
//! A separate package, because it knows nothing of operators. The program that runs the scripts passes what is specific to it:
//!
//! - [`builtins`] replaces Rhai's own functions by ones that check limits while they run. The program implements [`Limits`].
//! - [`short`] finds the functions of a script that never compute for long. The program passes [`short::Rules`]: which of its functions
//!   and fields are short.
//! - [`replaced`] finds calls of the program's functions that Rhai would turn into calls of the script's functions.
//! - [`names`] returns names in a script: of variables, properties and functions.
#![expect(clippy::unnecessary_box_returns, reason = "Rhai takes and gives its errors boxed")]

pub mod builtins;
mod limits;
pub mod names;
pub mod replaced;
pub mod short;

use rhai::{EvalAltResult, Position};

pub use self::limits::Limits;

/// A result, or the error that Rhai reports to the script.
pub type Fallible<T> = Result<T, Box<EvalAltResult>>;

/// Returns a runtime error with this message and without a place, which Rhai adds. Scripts can catch it.
pub fn problem(message: impl Into<String>) -> Box<EvalAltResult> {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}
