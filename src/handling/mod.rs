//! Runs chosen handlers: arguments, limits, outcomes; calls filters and selectors; sends patches.

pub mod activities;
pub mod asking;
pub mod choosing;
pub mod failing;
pub mod patching;
pub mod run;
pub mod time_slice;
pub mod turns;
