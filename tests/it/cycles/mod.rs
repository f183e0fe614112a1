//! The whole reactor on virtual time: an operator of closures on the embedded API server, in process.
//!
//! `scenario.rs` reads what handlers and users do, `stage.rs` plays it, `transcript.rs` holds what was seen against what
//! was expected.

mod crashes;
mod errors;
mod observation;
mod readiness;
pub(crate) mod scenario;
mod server;
pub(crate) mod stage;
pub(crate) mod transcript;
pub(crate) mod watched;

use crate::vectors;

#[test]
fn cycles() {
    let mut beyond = 0;
    vectors::run_some("cycles", |vector| {
        let scenario = scenario::Scenario::parse(&vector.input);
        if scenario.is_beyond().is_some() {
            beyond += 1;
            return None;
        }
        Some(stage::play(&scenario).compare(&vector.expected))
    });
    vectors::say(&format!("vectors cycles: {beyond} need sub-handlers, which come later"));
}
