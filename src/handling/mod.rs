//! Runs chosen handlers: arguments, limits, outcomes; asks filters; sends patches.

pub mod activities;
pub mod asking;
pub mod patching;
pub mod run;
