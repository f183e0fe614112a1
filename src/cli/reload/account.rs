//! How reloads are told: in the log, in `/readyz` and in `/metrics`.

use std::time::Duration;

use jiff::Timestamp;

use crate::cli::{options::Note, report::Report};
use crate::logic::generation::Changes;
use crate::ports::{Clock, Health, HealthState};

/// The part of the health.
const PART: &str = "scripts";

/// The log target.
const TARGET: &str = "kopf.scripts";

/// What was told, and how things are.
pub(super) struct Account {
    health: Health,
    clock: Clock,
    generation: u64,
    /// Since when it runs.
    since: Timestamp,
    /// Why the last edit does not, if so.
    refusal: Option<Report>,
    /// Why changes are not seen at the moment.
    troubles: Vec<String>,
}

/// Tells what the user should know.
pub(super) fn note(notes: &[Note]) {
    for note in notes {
        match note {
            Note::Info(text) => tracing::info!(target: TARGET, "{text}"),
            Note::Warning(text) => tracing::warn!(target: TARGET, "{text}"),
        }
    }
}

impl Account {
    /// The first generation runs.
    pub(super) fn open(health: Health, clock: Clock) -> Self {
        let since = clock.now();
        let troubles = Vec::new();
        let account = Account { health, clock, generation: 1, since, refusal: None, troubles };
        account.publish();
        account
    }

    /// Whether the last edit does not run.
    pub(super) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// A new generation runs.
    pub(super) fn accepted(
        &mut self,
        generation: u64,
        edited: &str,
        changes: &Changes,
        took: Duration,
    ) {
        (self.generation, self.since, self.refusal) = (generation, self.clock.now(), None);
        let milliseconds = took.as_millis();
        tracing::info!(
            target: TARGET,
            "Reloaded {edited}: generation {generation}, {changes} ({milliseconds} ms)."
        );
        self.health.metrics().reloaded("accepted");
        self.publish();
    }

    /// An edit does not run. The same reason as before is not told again: an editor that saves on every key repeats it.
    pub(super) fn refused(&mut self, present: u64, edited: &str, report: &Report) {
        self.health.metrics().reloaded("rejected");
        if self.refusal.as_ref() != Some(report) {
            let edited = if edited.is_empty() { "the scripts" } else { edited };
            tracing::error!(
                target: TARGET,
                "Cannot reload {edited}; generation {present} goes on.\n{report}"
            );
        }
        self.refusal = Some(report.clone());
        self.publish();
    }

    /// The edit was taken back.
    pub(super) fn undone(&mut self, present: u64) {
        if self.refusal.take().is_some() {
            tracing::info!(target: TARGET, "The scripts are again those of generation {present}.");
        }
        self.publish();
    }

    /// Why changes are not seen at the moment.
    pub(super) fn troubles(&mut self, troubles: Vec<String>) {
        if self.troubles == troubles {
            return;
        }
        for trouble in troubles.iter().filter(|it| !self.troubles.contains(it)) {
            tracing::warn!(target: TARGET, "Generation {} goes on; {trouble}", self.generation);
        }
        if troubles.is_empty() {
            tracing::info!(target: TARGET, "Changes of the scripts are seen again.");
        }
        self.troubles = troubles;
        self.publish();
    }

    /// The operator serves with what it has, so this part is ready whatever became of an edit.
    fn publish(&self) {
        let mut text = format!("generation {} since {:.0}", self.generation, self.since);
        if let Some(refusal) = &self.refusal {
            let reason = refusal.message.lines().next().unwrap_or_default();
            text = format!("{text}; the last edit is refused: {reason}");
        }
        for trouble in &self.troubles {
            text = format!("{text}; {trouble}");
        }
        self.health.note(PART, HealthState::Ready, &text);
        self.health.metrics().generation(self.generation, self.since);
    }
}
