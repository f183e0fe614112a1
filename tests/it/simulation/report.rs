//! Runs many seeds, shrinks failures, and prints how to repeat them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use kopf::testing::run_paused;

use super::{
    faults::{Kind, Part},
    mutants::Mutant,
    world::{self, Outcome, Plan, Stage},
};

/// Maximum number of runs of one seed while it is shrunk.
const SHRINKING_MAX: usize = 300;

/// The results of many seeds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) runs: u64,
    faults: BTreeMap<Kind, u64>,
    objects: usize,
    pub(super) failed: Vec<(u64, Vec<String>)>,
}

/// Runs a plan. A panic counts as a broken rule.
pub(super) fn run(plan: &Plan) -> Outcome {
    let run = || run_paused(world::run(plan));
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        let broken = vec![format!("panic: {}", text.unwrap_or_default())];
        Outcome { broken, ..Outcome::default() }
    })
}

impl Tally {
    /// Runs one more seed. Returns the first rule that it breaks.
    pub(super) fn add(&mut self, plan: &Plan) -> Option<String> {
        let outcome = run(plan);
        self.runs += 1;
        self.objects += outcome.objects;
        for fired in &outcome.fired {
            *self.faults.entry(fired.kind).or_default() += 1;
        }
        let first = outcome.broken.first().cloned();
        if first.is_some() {
            self.failed.push((plan.seed, outcome.broken));
        }
        first
    }

    /// Returns the faults per kind, and the seeds that failed.
    pub(super) fn table(&self) -> String {
        let mut text =
            format!("{} seeds, {} faults\n", self.runs, self.faults.values().sum::<u64>());
        for kind in Kind::ALL {
            let count = self.faults.get(&kind).copied().unwrap_or_default();
            writeln!(text, "  {:14} {count:8}", format!("{kind:?}")).expect("a string");
        }
        writeln!(text, "  {} objects", self.objects).expect("a string");
        for (seed, broken) in &self.failed {
            writeln!(text, "  seed {seed} fails: {}", broken[0]).expect("a string");
        }
        text
    }
}

/// Removes faults and actions, by halves and then one by one, as long as the same rule is broken.
pub(super) fn shrink(plan: &Plan) -> (Outcome, BTreeSet<Part>) {
    let mut best = run(plan);
    let class = best.broken.first().map(|it| class_of(it));
    let mut parts = parts_of(&best);
    let mut runs = 0;
    let mut size = parts.len().div_ceil(2);
    while size > 0 && runs < SHRINKING_MAX {
        let mut begin = 0;
        while begin < parts.len() && runs < SHRINKING_MAX {
            let end = (begin + size).min(parts.len());
            let left: Vec<_> = [&parts[..begin], &parts[end..]].concat();
            let only = Some(Arc::new(left.iter().cloned().collect()));
            let outcome = run(&Plan { only, ..plan.clone() });
            runs += 1;
            if outcome.broken.iter().any(|it| Some(class_of(it)) == class) {
                best = outcome;
                parts = left;
            } else {
                begin = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    (best, parts.into_iter().collect())
}

/// Returns a broken rule without what differs between runs.
fn class_of(rule: &str) -> String {
    let words = rule.split_whitespace().filter(|it| !it.contains(|it: char| it.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

fn parts_of(outcome: &Outcome) -> Vec<Part> {
    let faults = outcome.fired.iter().map(|it| it.part.clone());
    let actions = outcome.actions.iter().map(|it| Part::Action(*it));
    actions.chain(faults).collect()
}

/// Returns the first of these seeds that shows a bug, and the rule that it breaks.
pub(super) fn find(mutant: Mutant, mut plans: impl Iterator<Item = Plan>) -> Option<(u64, String)> {
    plans.find_map(|plan| {
        let plan = Plan { stage: Stage::Native, mutant: Some(mutant), ..plan };
        let rule = run(&plan).broken.into_iter().next()?;
        Some((plan.seed, rule))
    })
}

/// Describes a failure: the seed, the shrunk history, and how to repeat it.
pub(super) fn describe(plan: &Plan) -> String {
    let (outcome, parts) = shrink(plan);
    let mut text = format!("seed {} fails", plan.seed);
    for rule in &outcome.broken {
        write!(text, "\n  {rule}").expect("a string");
    }
    write!(text, "\nthe fewest parts that still fail ({}):", parts.len()).expect("a string");
    for part in &parts {
        let fired = outcome.fired.iter().find(|it| it.part == *part);
        let kind = fired.map(|it| format!("{:?} at {:.3} s: ", it.kind, it.at.as_secs_f64()));
        write!(text, "\n  {}{part}", kind.unwrap_or_default()).expect("a string");
    }
    write!(text, "\nthe history:\n{}", outcome.lines.join("\n")).expect("a string");
    write!(
        text,
        "\nto repeat it: KOPF_SIMULATION_SEED={} cargo test -p kopf --test it -- simulation::on_demand --nocapture",
        plan.seed
    )
    .expect("a string");
    text
}
