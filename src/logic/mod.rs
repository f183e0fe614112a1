//! What an event means and what to do about it: pure functions over plain data.
//!
//! Nothing here touches the outside world and thus nothing here can fail for its reasons; `now` is an argument.
//! The contract is `tests/vectors/`: a suite and the file that satisfies it share a name.

pub mod cause;
pub mod declare;
pub mod diff;
pub mod fields;
pub mod filters;
pub mod function;
pub mod handler;
pub mod json;
pub mod lifecycle;
pub mod object;
pub mod outcome;
pub mod patch;
pub mod python_text;
pub mod reason;
pub mod registry;
pub mod resource;
pub mod selection;
pub mod selector;
