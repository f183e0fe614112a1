//! The whole operator in a world with all kinds of faults, from a seed, and the conditions that it must meet in spite of them.
//!
//! `world.rs` runs a seed: `actions.rs` is what users do, `operators.rs` starts and kills processes, whose handlers are in
//! `natives.rs` or scripts. `faults.rs` decides which request or watch line has which fault; `wire.rs` and `lines.rs` apply it.
//! `history.rs` checks each call against what the server has stored at that time, and `costs.rs` the number of calls; `checks.rs`
//! checks the end. `levels` has the worlds with reconcile handlers and schedules. `report.rs` shrinks failures. `mutants.rs` has
//! bugs that must be found.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place carries out its own kinds of faults and actions"
)]

mod actions;
mod checks;
mod costs;
mod dice;
mod faults;
mod history;
mod levels;
mod lines;
mod mutants;
mod natives;
mod operators;
mod report;
mod scripts;
mod stored;
mod wire;
mod world;

use mutants::Mutant;
use report::Tally;
use scripts::Language;
use world::{Plan, Stage};

/// The number of seeds of one of the four tests of CI.
const SEEDS: u64 = 125;

/// The number of seeds of the test of CI in worlds with reconcile handlers and schedules.
const LEVEL_SEEDS: u64 = 20;

/// Seeds that failed once, and their errors.
const MENDED: [(u64, &str); 10] = [
    (5107, "a 404 without the name of the object was taken for its deletion"),
    (11_619, "what an edited handler wanted was dropped, although the server had accepted it"),
    (11_690, "an object of a restored backup was listed before its changes were dropped"),
    (11_916, "a change was accepted without a response, and refused when it was repeated"),
    (13_532, "a record of a deletion was purged, because the clock had been set back"),
    (14_469, "the deletion of a CRD was shown after the CRD had been created again"),
    (1_000_000, "a child that the watch had not shown was left by the deletion of its parent"),
    (
        1_000_173,
        "a function was called for an object without the finalizer, which was deleted meanwhile",
    ),
    (
        2_000_614,
        "an object that had replaced a child was changed, because the watch had not shown it",
    ),
    (1_000_178, "two runs of an interval had the same time, because the clock had been set back"),
];

/// The number of seeds in which a deliberate bug must be found.
const MUTANT_SEEDS: u64 = 2000;

/// Seeds that find the deliberate bugs, so that CI need not search.
const FOUND: [(Mutant, u64); 5] = [
    (Mutant::DropsEvent, 1),
    (Mutant::ForgetsStatus, 12),
    (Mutant::ForgetsFinalizer, 0),
    (Mutant::RepeatsPatch, 11),
    (Mutant::IgnoresUid, 15),
];

fn variable(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test has no other arguments")]
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

/// Returns the plan of a seed: its last two digits determine its world.
fn plan(seed: u64) -> Plan {
    let is_set = |name| variable(name).is_some_and(|it| it > 0);
    let stage = match seed % 20 {
        _ if seed >= levels::FIRST_SEED => stage_with_levels(seed),
        0..5 => Stage::Native,
        5 => Stage::Scripts(Language::Lua),
        6 => Stage::Scripts(Language::Rhai),
        7 | 8 => Stage::Replicas,
        9 => Stage::Definitions,
        10 | 11 => Stage::Restored,
        12 => Stage::Clocks,
        13 | 14 => Stage::Namespaces,
        15 => Stage::Quota(Language::Lua),
        16 => Stage::Quota(Language::Rhai),
        17 => Stage::Frozen,
        _ => Stage::Lagging,
    };
    let is_verbose = is_set("KOPF_SIMULATION_LOG");
    Plan { stage, seed, only: None, mutant: None, is_verbose }
}

/// Returns the world of a seed, of those with reconcile handlers and schedules.
fn stage_with_levels(seed: u64) -> Stage {
    match seed % 10 {
        0..4 => Stage::Levels(None),
        4 => Stage::Levels(Some(Language::Lua)),
        5 => Stage::Levels(Some(Language::Rhai)),
        6 | 7 => Stage::LevelReplicas,
        _ => Stage::Schedules,
    }
}

#[expect(clippy::print_stderr, reason = "the result of the simulation")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Runs these seeds; the first one that fails is shrunk.
fn run(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    for seed in seeds {
        if let Some(rule) = tally.add(&plan(seed)) {
            say(&format!("seed {seed} breaks a rule: {rule}"));
        }
    }
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
fn seeds_with_children_and_schedules() {
    run(levels::FIRST_SEED..levels::FIRST_SEED + LEVEL_SEEDS);
}

#[test]
fn seeds_that_failed_once_are_green() {
    for (seed, cause) in MENDED {
        say(&format!("seed {seed}: {cause}"));
        run(seed..seed + 1);
    }
}

#[test]
fn a_seed_has_one_history() {
    // A script runs on a separate thread: events at the same virtual time, with which each line begins, have no order.
    let history = |seed| {
        let mut lines = report::run(&plan(seed)).lines;
        lines.sort();
        lines
    };
    // Rhai calls functions on several threads: later times may depend on the order, too. So may the requests of two schedules that
    // are due at the same time, so the seeds with schedules are left out: the first fault may hit either of them.
    let has_order = |seed: &u64| plan(*seed).stage.language() != Some(Language::Rhai);
    let seeds = 0..20;
    for seed in seeds.filter(has_order) {
        let (first, second) = (history(seed), history(seed));
        assert!(first.len() > 10, "seed {seed}: {first:?}");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn deliberate_bugs_are_found() {
    for (mutant, seed) in FOUND {
        let found = report::find(mutant, std::iter::once(plan(seed)));
        assert!(found.is_some(), "{mutant:?} is not found by seed {seed}");
    }
}

#[test]
fn without_faults_and_bugs_nothing_is_broken() {
    for seed in (0..20).chain(levels::FIRST_SEED..levels::FIRST_SEED + 10) {
        let actions = (1..100).map(faults::Part::Action);
        let only = Some(std::sync::Arc::new(actions.collect()));
        let outcome = report::run(&Plan { only, ..plan(seed) });
        assert!(outcome.fired.is_empty());
        assert_eq!(outcome.broken, [""; 0], "seed {seed}");
    }
}

/// Runs the simulation that the environment requests: `scripts/simulate` sets it.
#[test]
fn on_demand() {
    if let Some(seed) = variable("KOPF_SIMULATION_SEED") {
        let outcome = report::run(&plan(seed));
        say(&outcome.lines.join("\n"));
        assert!(outcome.broken.is_empty(), "{}", report::describe(&plan(seed)));
    }
    if let Some(seeds) = variable("KOPF_SIMULATION_SEEDS") {
        let from = variable("KOPF_SIMULATION_FROM").unwrap_or(0);
        run(from..from + seeds);
    }
    if variable("KOPF_SIMULATION_MUTATIONS").is_some() {
        let search = |mutant| {
            let found = report::find(mutant, (0..MUTANT_SEEDS).map(plan));
            let text = found.as_ref().map(|(seed, rule)| format!("seed {seed}: {rule}"));
            say(&format!("{mutant:?}: {}", text.unwrap_or_else(|| "not found".into())));
            found
        };
        let found = Mutant::ALL.map(search);
        assert!(found.iter().all(Option::is_some), "not all deliberate bugs are found");
    }
}
