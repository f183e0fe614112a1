//! The whole reactor on virtual time: an operator of closures on the embedded API server, in process.
//!
//! `scenario.rs` reads what handlers and users do, `stage.rs` plays it, `transcript.rs` holds what was seen against what
//! was expected.

mod chosen;
mod crashes;
mod errors;
pub(crate) mod heard;
mod lost;
mod observation;
mod readiness;
pub(crate) mod scenario;
mod scopes;
mod server;
pub(crate) mod stage;
pub(crate) mod transcript;
pub(crate) mod watched;

use crate::vectors;

#[test]
fn cycles() {
    vectors::run("cycles", |vector| {
        stage::play(&scenario::Scenario::parse(&vector.input)).compare(&vector.expected)
    });
}
