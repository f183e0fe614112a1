//! Functions of the language that are replaced: those that could work for long in one piece, take much memory at once, or
//! swallow the abort of a function that they call.
//!
//! The names and the results are Rhai's. What is different: the limits are looked at on the way.

mod equality;
mod json;
mod lists;
mod ordering;
mod texts;

use rhai::{Dynamic, Engine, EvalAltResult, Position};

use super::control::rooms;
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

const LIST: &str = "Size of array/BLOB";
const MAP: &str = "Size of object map";
const TEXT: &str = "Length of string";

/// As the language itself tells it.
fn too_large(what: &str) -> Box<EvalAltResult> {
    EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into()
}

/// Refuses a value that is larger than it may be, when the script looks at it.
///
/// The language's own limits measure a value with all that is inside after each operation, so that a loop that fills a list takes time in
/// proportion to the square of its length. What is inside counts when it is passed to the host, and for the memory of the script.
pub(super) fn check_size(value: &Dynamic) -> Outcome<()> {
    let is_within = |len: Option<usize>, most| len.is_none_or(|it| it <= most);
    let texts = || rooms().1.bytes();
    let larger = if value.is_locked() {
        return Ok(());
    } else if value.is_string() {
        let len = value.as_immutable_string_ref().ok().map(|it| it.len());
        (!is_within(len, SHORT) && !is_within(len, texts())).then_some(TEXT)
    } else if value.is_array() {
        let len = value.as_array_ref().ok().map(|it| it.len());
        (!is_within(len, ITEMS_MAX)).then_some(LIST)
    } else if value.is_map() {
        let len = value.as_map_ref().ok().map(|it| it.len());
        (!is_within(len, ITEMS_MAX)).then_some(MAP)
    } else if value.is_blob() {
        let len = value.as_blob_ref().ok().map(|it| it.len());
        (!is_within(len, SHORT) && !is_within(len, texts())).then_some(TEXT)
    } else {
        None
    };
    larger.map_or(Ok(()), |it| Err(too_large(it)))
}
