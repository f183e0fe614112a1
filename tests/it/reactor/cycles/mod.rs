//! The whole reactor on virtual time: an operator of closures on the embedded API server, in process.
//!
//! `scenario.rs` reads what handlers and users do, `run.rs` runs it, `transcript.rs` compares what was seen with what was expected.

mod chosen;
mod conflicts;
mod crashes;
mod discovery;
mod errors;
pub(crate) mod heard;
mod listed;
mod lost;
mod observation;
mod older;
mod readiness;
mod records;
mod refused;
mod restarted;
pub(crate) mod run;
pub(crate) mod scenario;
mod scopes;
mod script;
mod server_pauses;
mod settled;
pub(crate) mod transcript;
mod versions;

use crate::vectors::{self, Vector};

#[test]
fn cycles() {
    vectors::run("cycles", |vector| {
        run::run(&scenario::Scenario::parse(&vector.input)).compare(&vector.expected)
    });
}

#[test]
fn the_log_of_cycles_is_that_of_kopf() {
    // Kopf waits two seconds for a sleeping object at its end, so the next operator starts later there.
    let slow_end = "takeover/restart-mid-way";
    let vectors = vectors::own("cycles");
    // Conflicts are resolved at once, not by another cycle.
    let is_same = |it: &&Vector| it.id != slow_end && !it.id.starts_with("conflict/");
    let problems = vectors.iter().filter(is_same).filter_map(|vector| {
        let transcript = run::run(&scenario::Scenario::parse(&vector.input));
        // Different actions have different logs.
        transcript
            .compare(&vector.expected)
            .ok()
            .filter(|()| transcript.has_order(&vector.expected))?;
        let problem = transcript.compare_log(&vector.expected).err()?;
        Some(format!("{}: {problem}", vector.id))
    });
    assert_eq!(problems.collect::<Vec<_>>(), Vec::<String>::new());
}
