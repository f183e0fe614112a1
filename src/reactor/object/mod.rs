//! One object: its worker, the cycle of each event, the calls of its handlers, and the changes that are sent.

pub(super) mod change;
mod conclusion;
mod cycle;
mod daemon_sync;
mod delivery;
mod error;
mod expectation;
mod holding;
pub(super) mod memory;
mod undecided;
mod watching;
pub(super) mod worker;
