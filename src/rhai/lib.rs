//! Limits and analyses for Rhai scripts that others have written.
//!
//! A separate package, because it knows nothing of operators. The program that runs the scripts passes what is specific to it:
//!
//! - [`builtins`] replaces Rhai's own functions with ones that check limits while they run. The program implements [`Limits`].
//! - [`short`] finds the functions of a script that never compute for long. The program passes [`short::Rules`]: which of its functions
//!   and fields are short.
//! - [`replaced`] finds calls of the program's functions that Rhai would turn into calls of the script's functions.
//! - [`names`] returns names in a script: of variables, properties and functions.

pub mod builtins;
mod errors;
mod limits;
pub mod names;
pub mod replaced;
pub mod short;

pub use self::{
    errors::{Fallible, problem},
    limits::Limits,
};
