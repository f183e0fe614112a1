//! Functions of the language that are replaced: those that could work for long in one piece, take much memory at once, or
//! swallow the abort of a function that they call.
//!
//! The names and the results are Rhai's. What is different: the limits are looked at on the way.

mod equality;
mod json;
mod ordering;
mod texts;

use rhai::{Engine, EvalAltResult, Position};

type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// Replaces the functions.
pub(super) fn register(engine: &mut Engine) {
    equality::register(engine);
    json::register(engine);
    ordering::register(engine);
    texts::register(engine);
}

/// As the language itself tells it.
fn too_large(what: &str) -> Box<EvalAltResult> {
    EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into()
}
