//! Calls that block a thread while they wait: of engines whose functions cannot be suspended, such as Rhai.
//!
//! [`runner::JobRunner`] runs the calls of one script on its threads, or inline where they are awaited. [`control`] is what the functions
//! of the host ask about the running call: its limits, its waits, its abort.

mod common;
pub(super) mod control;
pub(super) mod inline;
pub(super) mod kept;
mod ledger;
mod link;
mod pool;
pub(super) mod present;
pub(super) mod runner;
mod stopwatch;
mod turn;
