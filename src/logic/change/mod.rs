//! The change of one object: what caused it, which handlers it concerns, what to call now, and what to send afterwards.

pub mod cause;
pub mod claim;
pub mod failed;
pub mod filters;
pub mod order;
pub mod patch;
pub mod plan;
pub mod registry;
pub mod repair;
pub mod selection;
pub mod settle;
pub mod settled;
pub mod state;
pub mod suspended;
pub mod undecided;
pub mod unhandled;
