//! Live reload: loads what changed in the sources, and hands it to the operator.
//!
//! One at a time: the sources settle, the whole set is loaded beside the generation that runs, the operator swaps or refuses, and
//! only then is the next change looked at. Whatever fails, the present generation goes on.

mod account;

use std::{ops::ControlFlow, sync::Arc};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(super) use self::account::Account;
use super::{
    report::Report,
    sources::{Attempt, Look, Sources},
};
use crate::logic::{
    generation::{Changes, Generation, Version},
    registry::Registry,
};
use crate::ports::{Candidate, Clock, Health, Rejection};
use crate::scripting::{Prepared, ScriptHost, ScriptSet};

/// A set that changed while it was loaded is loaded again, so that none is a mixture; but not for ever.
const MIXTURES_MAX: u32 = 5;

/// Candidates that wait: the next one is made when the verdict on the last is known.
pub const WAITING_MAX: usize = 1;

/// Follows the sources of one operator.
pub struct Reloading {
    sources: Sources,
    host: Arc<ScriptHost>,
    candidates: mpsc::Sender<Candidate>,
    account: Account,
    /// The generation that runs.
    present: Version,
    /// Sets in a row that changed while they were loaded.
    mixtures: u32,
}

/// What reloading is made of.
pub struct Parts {
    /// Where the scripts come from; they know what runs.
    pub sources: Sources,
    /// What runs them.
    pub host: Arc<ScriptHost>,
    /// The way to the operator.
    pub candidates: mpsc::Sender<Candidate>,
    /// Where it is told how things are.
    pub health: Health,
    /// For the moments of generations.
    pub clock: Clock,
}

/// Why a set does not become a generation.
enum Refusal {
    /// It is told to the user, and waits for the next edit.
    Wrong(Report),
    /// It was not the same any more when it was loaded.
    Mixture,
    /// It was not the same any more when its start-up handlers had not ended.
    Outdated,
    /// The operator takes nothing any more.
    Ending,
}

impl Reloading {
    /// The first generation runs.
    pub fn new(parts: Parts) -> Self {
        let Parts { sources, host, candidates, health, clock } = parts;
        let account = Account::open(health, clock);
        Reloading { sources, host, candidates, account, present: Version::FIRST, mixtures: 0 }
    }

    /// Reloads whatever changes, until `stop` or until the operator ends.
    pub async fn follow(mut self, stop: CancellationToken) {
        let reload = async {
            loop {
                let look = self.sources.changed().await;
                account::note(&look.notes);
                // Also an edit that is taken back after it was refused.
                let is_undone = self.account.is_refused() && self.sources.is_running(&look);
                if (self.sources.is_news(&look) || is_undone)
                    && self.consider(look).await.is_break()
                {
                    return;
                }
                self.account.troubles(self.sources.troubles());
            }
        };
        tokio::select! {
            biased; // the end first
            () = stop.cancelled() => {}
            () = reload => {}
        }
    }

    /// Makes a generation of a set, if it can be.
    async fn consider(&mut self, look: Look) -> ControlFlow<()> {
        let edited = look.print.since(&self.sources.running()).to_string();
        let since = look.since;
        if self.sources.is_running(&look) {
            self.sources.forget();
            self.account.undone(self.present.number());
            return ControlFlow::Continue(());
        }
        match self.replace(look, &edited).await {
            Ok(changes) => {
                self.mixtures = 0;
                self.sources.took();
                self.present = self.present.next_generation();
                self.account.accepted(self.present.number(), &edited, &changes, since.elapsed());
            }
            Err(Refusal::Wrong(report)) => {
                self.mixtures = 0;
                self.account.refused(self.present.number(), &edited, &report);
            }
            Err(Refusal::Mixture) => {
                self.mixtures += 1;
                self.sources.forget();
            }
            Err(Refusal::Outdated) => {
                self.account.outdated(self.present.number(), &edited);
                self.sources.forget();
            }
            Err(Refusal::Ending) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    async fn replace(&mut self, look: Look, edited: &str) -> Result<Changes, Refusal> {
        let scripts = match look.scripts {
            Ok(scripts) => scripts,
            Err(report) => {
                self.sources.tried(Attempt::of_problem(&report));
                return Err(Refusal::Wrong(report));
            }
        };
        let attempt = Attempt::of(&scripts);
        let prepared = self.host.prepare(scripts).await;
        self.sources.tried(attempt);
        let now = self.sources.look().await;
        account::note(&now.notes);
        if self.sources.is_news(&now) && self.mixtures < MIXTURES_MAX {
            return Err(Refusal::Mixture);
        }
        let prepared = prepared.map_err(|it| Refusal::Wrong(Report::of_scripts(&it)))?;
        let (generation, scripts) = self.generation(prepared)?;
        self.account.waits(edited);
        let changes = self.propose(generation).await?;
        self.host.take(scripts);
        Ok(changes)
    }

    fn generation(&self, prepared: Prepared) -> Result<(Generation, ScriptSet), Refusal> {
        let Prepared { handlers, lifecycle, scripts } = prepared;
        let registry = Registry::new(handlers);
        let registry = registry.map_err(|it| Refusal::Wrong(Report::failure(it.to_string())))?;
        let version = self.present.next_generation();
        Ok((Generation { version, ..Generation::new(registry, lifecycle) }, scripts))
    }

    /// Waits for the verdict of the operator, but not for start-up handlers of a set that has changed meanwhile.
    async fn propose(&mut self, generation: Generation) -> Result<Changes, Refusal> {
        let (verdict, mut answer) = oneshot::channel();
        let withdrawn = CancellationToken::new();
        let candidate = Candidate { generation, verdict, withdrawn: withdrawn.clone() };
        if self.candidates.send(candidate).await.is_err() {
            return Err(Refusal::Ending);
        }
        let verdict = loop {
            let look = tokio::select! {
                biased; // what is decided holds
                verdict = &mut answer => break verdict,
                look = self.sources.changed(), if !withdrawn.is_cancelled() => look,
            };
            account::note(&look.notes);
            if self.sources.is_news(&look) {
                withdrawn.cancel();
            }
        };
        match verdict {
            Ok(Ok(changes)) => Ok(changes),
            Ok(Err(Rejection::Startup(problem))) => {
                let hint = "see the errors of the startup handlers above";
                Err(Refusal::Wrong(Report::failure(problem).with_hint(hint)))
            }
            Ok(Err(Rejection::Selector(problem))) => {
                let hint = "it is asked about each resource of the cluster, and returns whether to serve it";
                Err(Refusal::Wrong(Report::failure(problem).with_hint(hint)))
            }
            Ok(Err(Rejection::Withdrawn)) => Err(Refusal::Outdated),
            Ok(Err(Rejection::Ending)) | Err(_) => Err(Refusal::Ending),
        }
    }
}
