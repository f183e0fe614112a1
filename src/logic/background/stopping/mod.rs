//! Decides why and how a daemon or a timer must stop.
//!
//! The contract is `tests/vectors/daemon-stopping.json`. Scripts see [`StopReasons`]; [`step`] and [`linear`] decide about the
//! stages of stopping.

mod reasons;
mod stages;
#[cfg(test)]
mod tests;

pub use self::reasons::{StopReason, StopReasons};
pub use self::stages::{StopTimeouts, StoppingStage, graceful, linear, step};
