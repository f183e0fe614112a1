//! The whole operator in a world where everything goes wrong, from a seed: what it must do in spite of it.
//!
//! `world.rs` runs a seed. `faults.rs` decides which request or watch line meets which fault, `wire.rs` and `lines.rs` carry it out.
//! `history.rs` checks each call against what the server has stored at that moment, `checks.rs` the end. `report.rs` shrinks what fails.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place carries out its own kinds of faults and actions"
)]

mod actions;
mod checks;
mod dice;
mod faults;
mod history;
mod lines;
mod natives;
mod open;
mod report;
mod stored;
mod wire;
mod world;

use open::Open;
use report::Tally;
use world::Plan;

/// The seeds of one test of CI.
const SEEDS: u64 = 125;

fn variable(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test has no other arguments")]
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

fn plan(seed: u64) -> Plan {
    let is_strict = variable("KOPF_SIMULATION_STRICT").is_some_and(|it| it > 0);
    let is_verbose = variable("KOPF_SIMULATION_LOG").is_some_and(|it| it > 0);
    Plan { seed, open: Open::new(is_strict), only: None, is_verbose }
}

#[expect(clippy::print_stderr, reason = "the result of the simulation")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Runs these seeds; the first one that fails is shrunk.
fn run(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    seeds.for_each(|seed| tally.add(&plan(seed)));
    say(&tally.table());
    if let Some((seed, _)) = tally.failed.first() {
        panic!("{}", report::describe(&plan(*seed)));
    }
}

#[test]
fn seeds_of_the_first_quarter() {
    run(0..SEEDS);
}

#[test]
fn seeds_of_the_second_quarter() {
    run(SEEDS..2 * SEEDS);
}

#[test]
fn seeds_of_the_third_quarter() {
    run(2 * SEEDS..3 * SEEDS);
}

#[test]
fn seeds_of_the_fourth_quarter() {
    run(3 * SEEDS..4 * SEEDS);
}

#[test]
fn a_seed_has_one_history() {
    for seed in [7, 8, 9] {
        let (first, second) = (report::run(&plan(seed)), report::run(&plan(seed)));
        assert!(first.lines.len() > 10);
        assert_eq!(first.lines, second.lines);
    }
}

/// Runs the seed of `KOPF_SIMULATION_SEED`, and prints its history; or as many as `KOPF_SIMULATION_SEEDS` says.
#[test]
fn one_seed() {
    if let Some(seed) = variable("KOPF_SIMULATION_SEED") {
        let outcome = report::run(&plan(seed));
        say(&outcome.lines.join("\n"));
        assert!(outcome.broken.is_empty(), "{}", report::describe(&plan(seed)));
    }
    if let Some(seeds) = variable("KOPF_SIMULATION_SEEDS") {
        let from = variable("KOPF_SIMULATION_FROM").unwrap_or(0);
        run(from..from + seeds);
    }
}
