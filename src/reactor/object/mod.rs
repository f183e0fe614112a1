//! One object: its worker, the cycle of each event, the calls of its handlers, and the changes that are sent.

pub(super) mod change;
mod conclusion;
pub(super) mod context;
mod cycle;
mod daemon_sync;
mod delivery;
mod error;
mod exclusive_timers;
mod expectation;
mod holding;
mod late_daemons;
pub(super) mod memory;
pub(super) mod pending_calls;
pub(super) mod permits;
pub(super) mod queue;
mod undecided;
mod watching;
pub(super) mod worker;
