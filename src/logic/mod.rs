//! Decides what an event means and what to do about it: pure functions over plain data.
//!
//! Nothing here uses files, the network or clocks, so nothing can fail because of them; `now` is an argument. The contract is
//! `tests/vectors/`: a suite and the file that satisfies it share a name.

pub mod access;
pub mod admission;
pub mod background;
pub mod change;
pub mod configure;
pub mod discovery;
pub mod generation;
pub mod handlers;
pub mod object;
pub mod reconcile;
pub mod replicas;
pub mod schedules;
pub mod text;
