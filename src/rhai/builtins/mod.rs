//! Replacements for Rhai's own functions: for those that could run for long without a check, allocate much memory at once, or swallow the
//! abort of a function that they call.
//!
//! Names and results are Rhai's. The difference: limits are checked while the functions run.

mod equality;
mod lists;
mod ordering;
#[cfg(test)]
mod tests;
mod texts;

use rhai::{Dynamic, Engine};

use super::{Fallible, Limits};

/// Strings of up to this many bytes are not compared with their limit, see [`Limits::string_size`].
const SHORT: usize = 1 << 10;

/// Registers all replacements in an engine. They check the limits of `L`.
pub fn register<L: Limits>(engine: &mut Engine) {
    equality::register::<L>(engine);
    lists::register::<L>(engine);
    ordering::register::<L>(engine);
    texts::register::<L>(engine);
}

/// Checks the size of a value without those inside of it, when the script reads a variable.
///
/// Rhai's own limits measure a value with everything inside of it after each operation, so that a loop that fills a list takes quadratic
/// time, and their errors have no position. Nested values count when they are passed to the program, and as the script's memory.
///
/// # Errors
///
/// Fails if a string or bytes are longer, or a list or a map has more items, than `L` allows.
pub fn check_size<L: Limits>(value: &Dynamic) -> Fallible<()> {
    // Of other values, `is_locked` asks for everything inside of them: it takes as long as they are large.
    if value.is_shared() && value.is_locked() {
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
    if items > L::ITEMS_MAX {
        return Err(L::too_many(what));
    }
    if text > SHORT && text > L::string_size() { Err(L::too_long()) } else { Ok(()) }
}
