//! The whole reactor on virtual time: an operator of closures on the embedded API server, in process.
//!
//! `scenario.rs` reads what handlers and users do, `stage.rs` plays it, `transcript.rs` holds what was seen against what
//! was expected.

pub mod scenario;
pub mod stage;
pub mod transcript;
