//! Functions of the language that are replaced: those that could work for long in one piece, take much memory at once, or
//! swallow the abort of a function that they call.
//!
//! The names and the results are Rhai's. What is different: the limits are looked at on the way.

mod equality;
mod json;
mod lists;
mod ordering;
mod texts;

use rhai::{Dynamic, Engine, EvalAltResult};

use super::control::{Abort, rooms};
use crate::scripting::values::limits::ITEMS_MAX;

/// Texts up to this length are always within their limit: it is the smallest value of the setting.
const SHORT: usize = 1 << 10;

type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// Replaces the functions.
pub(super) fn register(engine: &mut Engine) {
    equality::register(engine);
    json::register(engine);
    lists::register(engine);
    ordering::register(engine);
    texts::register(engine);
}

/// Returns the error of a list or a map (`what`) with too many items.
fn too_many(what: &'static str) -> Box<EvalAltResult> {
    Abort::TooMany(what).into_error()
}

/// Returns the error of a string that is too long.
fn too_long() -> Box<EvalAltResult> {
    Abort::TooLong(rooms().1.bytes()).into_error()
}

/// Refuses a value that is larger than it may be, when the script looks at it.
///
/// The language's own limits measure a value with all that is inside after each operation, so that a loop that fills a list takes time in
/// proportion to the square of its length, and their errors have no place. What is inside counts when it is passed to the host, and for
/// the memory of the script.
pub(super) fn check_size(value: &Dynamic) -> Outcome<()> {
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
    if text > SHORT && text > rooms().1.bytes() { Err(too_long()) } else { Ok(()) }
}
