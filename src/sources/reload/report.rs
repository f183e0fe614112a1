//! Reports about reloads: in the log, in `/readyz` and in `/metrics`.

use std::time::Duration;

use jiff::Timestamp;

use crate::logic::generation::Changes;
use crate::ports::Clock;
use crate::sources::{Notice, SourceProblem};
use crate::telemetry::{Health, HealthState, ReloadLabels};

/// The name under which the scripts are a part of the health.
const PART: &str = "scripts";

/// The target of log lines about the scripts.
const TARGET: &str = "kopf.scripts";

/// The reports of one operator, and the current state.
pub struct ReloadReport {
    health: Health,
    clock: Clock,
    generation: u64,
    /// When the current generation started.
    since: Timestamp,
    /// Why the last edit was rejected, if it was.
    refusal: Option<SourceProblem>,
    /// The edited scripts, while start-up handlers of the new generation run.
    waiting: Option<String>,
    /// Why changes cannot be detected at the moment.
    troubles: Vec<String>,
}

/// Logs messages about watching.
pub(super) fn log_notes(notes: &[Notice]) {
    for note in notes {
        match note {
            Notice::Info(text) => tracing::info!(target: TARGET, "{text}"),
            Notice::Warning(text) => tracing::warn!(target: TARGET, "{text}"),
        }
    }
}

impl ReloadReport {
    /// Reports the first generation.
    pub(super) fn open(health: Health, clock: Clock) -> Self {
        ReloadReport::with(health, clock, Vec::new())
    }

    /// Reports the only generation: hot reload is disabled.
    pub fn close(health: Health, clock: Clock) {
        ReloadReport::with(health, clock, vec!["hot reload is disabled (--no-reload)".to_owned()]);
    }

    fn with(health: Health, clock: Clock, troubles: Vec<String>) -> Self {
        let since = clock.now();
        // Both counters exist from the start: an alert on an increase would miss the first one otherwise.
        for result in ["accepted", "rejected"] {
            drop(health.metrics().reloads.get_or_create(&ReloadLabels { result }));
        }
        let (refusal, waiting) = (None, None);
        let report =
            ReloadReport { health, clock, generation: 1, since, refusal, waiting, troubles };
        report.publish();
        report
    }

    /// Returns whether the last edit was rejected.
    pub(super) fn is_rejected(&self) -> bool {
        self.refusal.is_some()
    }

    /// Reports that an edit waits for its start-up handlers.
    pub(super) fn waits(&mut self, edited: &str) {
        self.waiting = Some(edited.to_owned());
        self.publish();
    }

    /// Reports that an edit was superseded by a newer one while it waited.
    pub(super) fn outdated(&mut self, present: u64, edited: &str) {
        self.waiting = None;
        tracing::info!(
            target: TARGET,
            "The edit of {edited} is superseded by a newer one; generation {present} keeps running."
        );
        self.publish();
    }

    /// Reports a new generation.
    pub(super) fn accepted(
        &mut self,
        generation: u64,
        edited: &str,
        changes: &Changes,
        took: Duration,
    ) {
        (self.generation, self.since, self.refusal) = (generation, self.clock.now(), None);
        self.waiting = None;
        let milliseconds = took.as_millis();
        tracing::info!(
            target: TARGET,
            "Reloaded {edited}: generation {generation}, {changes} ({milliseconds} ms)."
        );
        self.health.metrics().reloaded("accepted");
        self.publish();
    }

    /// Reports a rejected edit. The same reason is not logged again: an editor that saves on every key would repeat it.
    pub(super) fn rejected(&mut self, present: u64, edited: &str, report: &SourceProblem) {
        self.health.metrics().reloaded("rejected");
        if self.refusal.as_ref() != Some(report) {
            let edited = if edited.is_empty() { "the scripts" } else { edited };
            tracing::error!(
                target: TARGET,
                "Reload of {edited} rejected; generation {present} keeps running.\n{report}"
            );
        }
        (self.refusal, self.waiting) = (Some(report.clone()), None);
        self.publish();
    }

    /// Reports that the rejected edit was reverted.
    pub(super) fn reverted(&mut self, present: u64) {
        if self.refusal.take().is_some() {
            tracing::info!(target: TARGET, "The edit was reverted; generation {present} keeps running.");
        }
        self.publish();
    }

    /// Reports why changes cannot be detected at the moment.
    pub(super) fn troubles(&mut self, troubles: Vec<String>) {
        if self.troubles == troubles {
            return;
        }
        for trouble in troubles.iter().filter(|it| !self.troubles.contains(it)) {
            tracing::warn!(target: TARGET, "Generation {} keeps running; {trouble}", self.generation);
        }
        if troubles.is_empty() {
            tracing::info!(target: TARGET, "Changes of the scripts are detected again.");
        }
        self.troubles = troubles;
        self.publish();
    }

    /// Updates the health. The operator keeps serving, so this part is ready whether or not an edit was rejected.
    fn publish(&self) {
        let mut text = format!("generation {} since {:.0}", self.generation, self.since);
        if let Some(refusal) = &self.refusal {
            let reason = refusal.message.lines().next().unwrap_or_default();
            text = format!("{text}; the last edit was rejected: {reason}");
        }
        if let Some(edited) = &self.waiting {
            text = format!("{text}; the edit of {edited} waits for its startup handlers");
        }
        for trouble in &self.troubles {
            text = format!("{text}; {trouble}");
        }
        self.health.note(PART, HealthState::Ready, &text);
        self.health.metrics().generation(self.generation, self.since);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ReloadReport, SourceProblem};
    use crate::logic::generation::Changes;
    use crate::ports::Clock;
    use crate::telemetry::{Health, HealthState, ReloadLabels};

    fn report() -> (ReloadReport, Health) {
        let health = Health::default();
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        (ReloadReport::open(health.clone(), clock), health)
    }

    fn health_text(health: &Health) -> String {
        let part = &health.parts()["scripts"];
        assert_eq!(part.state, HealthState::Ready, "it keeps serving, also after a rejected edit");
        part.text.clone()
    }

    fn count(health: &Health, result: &'static str) -> u64 {
        health.metrics().reloads.get_or_create(&ReloadLabels { result }).get()
    }

    #[tokio::test(start_paused = true)]
    async fn the_generation_and_its_age_are_reported() {
        let (mut report, health) = report();
        assert_eq!(health_text(&health), "generation 1 since 1970-01-01T00:00:00Z");
        tokio::time::sleep(Duration::from_secs(61)).await;
        report.accepted(2, "a.lua", &Changes::default(), Duration::ZERO);
        assert_eq!(health_text(&health), "generation 2 since 1970-01-01T00:01:01Z");
        let metrics = health.metrics();
        assert_eq!((metrics.generation.get(), count(&health, "accepted")), (2, 1));
        assert!((metrics.generation_seconds.get() - 61.0).abs() < 0.001);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_rejection_is_reported_in_one_line_until_the_next_save() {
        let (mut report, health) = report();
        report.rejected(1, "a.lua", &SourceProblem::new("a.lua:3: no\n |\n3 | nonsense"));
        let refused =
            "generation 1 since 1970-01-01T00:00:00Z; the last edit was rejected: a.lua:3: no";
        assert_eq!(health_text(&health), refused);
        assert!(report.is_rejected());
        report.reverted(1);
        assert_eq!(health_text(&health), "generation 1 since 1970-01-01T00:00:00Z");
        report.rejected(1, "a.lua", &SourceProblem::new("worse"));
        report.accepted(2, "a.lua", &Changes::default(), Duration::ZERO);
        assert!(!report.is_rejected());
        assert_eq!(count(&health, "rejected"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pending_edit_is_reported_until_it_is_decided() {
        let (mut report, health) = report();
        report.waits("a.lua");
        assert!(
            health_text(&health).ends_with("Z; the edit of a.lua waits for its startup handlers")
        );
        report.outdated(1, "a.lua");
        assert_eq!(health_text(&health), "generation 1 since 1970-01-01T00:00:00Z");
        report.waits("a.lua");
        report.accepted(2, "a.lua", &Changes::default(), Duration::ZERO);
        assert!(
            health_text(&health).starts_with("generation 2 since ")
                && health_text(&health).ends_with('Z')
        );
    }

    #[tokio::test(start_paused = true)]
    async fn obstacles_to_watching_are_reported_while_they_last() {
        let (mut report, health) = report();
        report.troubles(vec!["changes of x are not detected: 403".into()]);
        assert!(health_text(&health).ends_with("Z; changes of x are not detected: 403"));
        report.troubles(Vec::new());
        assert!(health_text(&health).ends_with('Z'));
    }

    #[tokio::test(start_paused = true)]
    async fn disabled_hot_reload_is_reported() {
        let health = Health::default();
        ReloadReport::close(health.clone(), Clock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        assert!(health_text(&health).ends_with("; hot reload is disabled (--no-reload)"));
        assert_eq!(health.metrics().generation.get(), 1);
    }
}
