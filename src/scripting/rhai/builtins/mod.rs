//! Replacements for Rhai's own functions: for those that could run for long without a check, allocate much memory at once, or swallow the
//! abort of a function that they call.
//!
//! Names and results are Rhai's. The difference: limits are checked while the functions run.

mod equality;
mod json;
mod lists;
mod ordering;
mod texts;

use rhai::{Dynamic, Engine, EvalAltResult};

use crate::scripting::{
    blocking::control::{Abort, sizes},
    values::limits::ITEMS_MAX,
};

/// Strings of up to this many bytes are always within their limit: it is the minimum of the setting.
const SHORT: usize = 1 << 10;

type Fallible<T> = Result<T, Box<EvalAltResult>>;

/// Registers all replacements in an engine.
pub(super) fn register(engine: &mut Engine) {
    equality::register(engine);
    json::register(engine);
    lists::register(engine);
    ordering::register(engine);
    texts::register(engine);
}

/// Returns the error of a list or a map (`what`) with too many items.
fn too_many(what: &'static str) -> Box<EvalAltResult> {
    Abort::TooMany(what).raised().into()
}

/// Returns the error of a string that is too long.
fn too_long() -> Box<EvalAltResult> {
    Abort::TooLong(sizes().1).raised().into()
}

/// Fails if a value is too large, when the script reads it.
///
/// Rhai's own limits measure a value with everything inside of it after each operation, so that a loop that fills a list takes quadratic
/// time, and their errors have no position. Nested values count when they are passed to the host, and as the script's memory.
pub(super) fn check_size(value: &Dynamic) -> Fallible<()> {
    if value.is_locked() {
        return Ok(());
    }
    let (text, items, what) = if value.is_string() {
        (value.as_immutable_string_ref().map_or(0, |it| it.len()), 0, "")
    } else if value.is_array() {
        (0, value.as_array_ref().map_or(0, |it| it.len()), "a list")
    } else if value.is_map() {
        (0, value.as_map_ref().map_or(0, |it| it.len()), "a map")
    } else if value.is_blob() {
        (value.as_blob_ref().map_or(0, |it| it.len()), 0, "")
    } else {
        return Ok(());
    };
    if items > ITEMS_MAX {
        return Err(too_many(what));
    }
    if text > SHORT && text > sizes().1 { Err(too_long()) } else { Ok(()) }
}
