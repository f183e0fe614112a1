//! The limits that functions of this package check while they run.

use rhai::EvalAltResult;

use super::errors::Fallible;

/// The limits of the running call of a script, and the errors of a call that reaches them.
///
/// All functions are without `self`: a function that is registered in an engine does not know which call it runs for. The implementation
/// finds the call itself, for example in a thread-local variable.
pub trait Limits: 'static {
    /// Maximum number of items of a list, and of fields of a map.
    const ITEMS_MAX: usize;

    /// Maximum nesting of lists and maps that are compared.
    const DEPTH_MAX: usize;

    /// Counts one step of a function that may run for long.
    ///
    /// # Errors
    ///
    /// Fails if the call has to end. Scripts must not be able to catch that.
    fn step() -> Fallible<()>;

    /// Checks whether the script may hold this many bytes more, before they are allocated.
    ///
    /// # Errors
    ///
    /// Fails if it may not. Scripts must not be able to catch that.
    fn reserve(bytes: usize) -> Fallible<()>;

    /// Returns the maximum size of a string in bytes, at least 1 KiB.
    fn string_size() -> usize;

    /// Returns the error of a string that would exceed [`string_size`](Limits::string_size).
    fn too_long() -> Box<EvalAltResult>;

    /// Returns the error of a collection, such as "a list", that would exceed [`ITEMS_MAX`](Limits::ITEMS_MAX).
    fn too_many(what: &'static str) -> Box<EvalAltResult>;
}
