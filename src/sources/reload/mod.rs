//! Hot reload: loads changed sources, and passes them to the operator.
//!
//! Changes are handled one at a time: the sources settle, the whole set is loaded next to the current generation, the operator
//! accepts or rejects it, and only then is the next change handled. If anything fails, the current generation keeps running.

mod report;

use std::{ops::ControlFlow, sync::Arc};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use self::report::ReloadReport;
use crate::logic::{
    change::registry::Registry,
    generation::{Changes, Generation, Version},
};
use crate::ports::{Candidate, Clock, Rejection};
use crate::scripting::{Prepared, ScriptHost, ScriptSet};
use crate::sources::{Snapshot, SourceProblem, Sources};
use crate::telemetry::Health;

/// A set that changed while it was loaded is loaded again, so that it does not mix versions; but at most this many times.
const MIXTURES_MAX: u32 = 5;

/// Maximum number of pending candidates: the next one is created after the verdict on the last.
pub const WAITING_MAX: usize = 1;

/// Reloads the sources of one operator.
pub struct Reloading {
    sources: Sources,
    host: Arc<ScriptHost>,
    candidates: mpsc::Sender<Candidate>,
    report: ReloadReport,
    /// The version of the live generation.
    present: Version,
    /// Consecutive sets that changed while they were loaded.
    mixtures: u32,
}

/// The parts that reloading needs.
pub struct Parts {
    /// The sources of the scripts, including the current set.
    pub sources: Sources,
    /// The host of the scripts.
    pub host: Arc<ScriptHost>,
    /// The channel to the operator.
    pub candidates: mpsc::Sender<Candidate>,
    /// The health to report to.
    pub health: Health,
    /// The clock for the start times of generations.
    pub clock: Clock,
}

/// The reason why a set does not become a generation.
enum ReloadRefusal {
    /// It is invalid: the reason is reported, and the next edit can fix it.
    Wrong(SourceProblem),
    /// It changed while it was loaded.
    Mixture,
    /// It changed before its start-up handlers had ended.
    Outdated,
    /// The operator is ending.
    Ending,
}

impl Reloading {
    /// Creates the reloading for an operator whose first generation runs.
    pub fn new(parts: Parts) -> Self {
        let Parts { sources, host, candidates, health, clock } = parts;
        let report = ReloadReport::open(health, clock);
        Reloading { sources, host, candidates, report, present: Version::FIRST, mixtures: 0 }
    }

    /// Reloads changed scripts, until `stop` or until the operator ends.
    pub async fn follow(mut self, stop: CancellationToken) {
        let reload = async {
            loop {
                let snapshot = self.sources.changed().await;
                report::log_notes(&snapshot.notes);
                // Also when a rejected edit is reverted.
                let is_reverted = self.report.is_rejected() && self.sources.is_running(&snapshot);
                if (self.sources.is_new(&snapshot) || is_reverted)
                    && self.consider(snapshot).await.is_break()
                {
                    return;
                }
                self.report.troubles(self.sources.troubles());
            }
        };
        tokio::select! {
            biased; // the stop signal first
            () = stop.cancelled() => {}
            () = reload => {}
        }
    }

    /// Makes a set the current generation, if possible.
    async fn consider(&mut self, snapshot: Snapshot) -> ControlFlow<()> {
        let edited = snapshot.fingerprint.since(&self.sources.running()).to_string();
        let since = snapshot.since;
        if self.sources.is_running(&snapshot) {
            self.sources.forget();
            self.report.reverted(self.present.number());
            return ControlFlow::Continue(());
        }
        match self.replace(snapshot, &edited).await {
            Ok(changes) => {
                self.mixtures = 0;
                self.sources.took();
                self.present = self.present.next_generation();
                self.report.accepted(self.present.number(), &edited, &changes, since.elapsed());
            }
            Err(ReloadRefusal::Wrong(report)) => {
                self.mixtures = 0;
                self.report.rejected(self.present.number(), &edited, &report);
            }
            Err(ReloadRefusal::Mixture) => {
                self.mixtures += 1;
                self.sources.forget();
            }
            Err(ReloadRefusal::Outdated) => {
                self.report.outdated(self.present.number(), &edited);
                self.sources.forget();
            }
            Err(ReloadRefusal::Ending) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    async fn replace(
        &mut self,
        snapshot: Snapshot,
        edited: &str,
    ) -> Result<Changes, ReloadRefusal> {
        let attempt = snapshot.attempt();
        let scripts = match snapshot.scripts {
            Ok(scripts) => scripts,
            Err(report) => {
                self.sources.tried(attempt);
                return Err(ReloadRefusal::Wrong(report));
            }
        };
        let prepared = self.host.prepare(scripts).await;
        self.sources.tried(attempt);
        let now = self.sources.snapshot().await;
        report::log_notes(&now.notes);
        if self.sources.is_new(&now) && self.mixtures < MIXTURES_MAX {
            return Err(ReloadRefusal::Mixture);
        }
        let prepared =
            prepared.map_err(|it| ReloadRefusal::Wrong(SourceProblem::of_scripts(&it)))?;
        let (generation, scripts) = self.generation(prepared)?;
        self.report.waits(edited);
        let changes = self.propose(generation).await?;
        self.host.take(scripts);
        Ok(changes)
    }

    fn generation(&self, prepared: Prepared) -> Result<(Generation, ScriptSet), ReloadRefusal> {
        let Prepared { handlers, lifecycle, scripts } = prepared;
        let registry = Registry::new(handlers);
        let registry =
            registry.map_err(|it| ReloadRefusal::Wrong(SourceProblem::new(it.to_string())))?;
        let version = self.present.next_generation();
        Ok((Generation { version, ..Generation::new(registry, lifecycle) }, scripts))
    }

    /// Waits for the verdict of the operator; stops waiting for start-up handlers if the set changes meanwhile.
    async fn propose(&mut self, generation: Generation) -> Result<Changes, ReloadRefusal> {
        let (verdict, mut answer) = oneshot::channel();
        let withdrawn = CancellationToken::new();
        let candidate = Candidate { generation, verdict, withdrawn: withdrawn.clone() };
        if self.candidates.send(candidate).await.is_err() {
            return Err(ReloadRefusal::Ending);
        }
        let verdict = loop {
            let snapshot = tokio::select! {
                biased; // the verdict first: it is final
                verdict = &mut answer => break verdict,
                snapshot = self.sources.changed(), if !withdrawn.is_cancelled() => snapshot,
            };
            report::log_notes(&snapshot.notes);
            if self.sources.is_new(&snapshot) {
                withdrawn.cancel();
            }
        };
        match verdict {
            Ok(Ok(changes)) => Ok(changes),
            Ok(Err(Rejection::Startup(problem))) => {
                let hint = "see the errors of the startup handlers above";
                Err(ReloadRefusal::Wrong(SourceProblem::new(problem).with_hint(hint)))
            }
            Ok(Err(Rejection::Webhooks(problem))) => {
                Err(ReloadRefusal::Wrong(SourceProblem::new(problem)))
            }
            Ok(Err(Rejection::Selector(problem))) => {
                let hint = "it is called for each resource of the cluster, and must return whether to serve it";
                Err(ReloadRefusal::Wrong(SourceProblem::new(problem).with_hint(hint)))
            }
            Ok(Err(Rejection::Withdrawn)) => Err(ReloadRefusal::Outdated),
            Ok(Err(Rejection::Ending)) | Err(_) => Err(ReloadRefusal::Ending),
        }
    }
}
