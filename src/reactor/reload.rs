//! New generations of scripts on their way into the running operator, one after another.
//!
//! A candidate first runs its start-up handlers, those that are new or changed, while the present generation serves. If they
//! fail, the present generation stays. Before: `ports/reloads.rs`. After: `serve.rs`, which lets the candidate take over.

use std::sync::Arc;

use parking_lot::Mutex;

use super::life::Life;
use crate::handling::{
    activities::{self, Activity, ActivityError},
    run::Runner,
};
use crate::logic::{
    generation::{Changes, Generation},
    handler::{Handler, Kind},
};
use crate::ports::{BoxFuture, Candidate, NativeLogins, Rejection, Reloads};
use crate::settings::Settings;

/// Where candidates come from, and what has become of the last one.
pub(super) struct Candidates {
    /// `None` if there are none, or no more.
    reloads: Option<Reloads>,
    trial: Option<Trial>,
}

/// A candidate whose start-up handlers run.
struct Trial {
    applicant: Applicant,
    changes: Changes,
    running: BoxFuture<'static, Result<Settings, ActivityError>>,
}

/// A candidate that has no answer yet. Whoever drops it ends.
struct Applicant(Option<Candidate>);

/// A candidate that can take over.
pub(super) struct Ready {
    /// What it declares, with its number.
    pub(super) generation: Generation,
    /// What differs from the present generation.
    pub(super) changes: Changes,
    /// The settings, if its start-up handlers have changed them.
    pub(super) settings: Option<Settings>,
    applicant: Applicant,
}

impl Candidates {
    /// Nothing has come yet.
    pub(super) fn new(reloads: Option<Reloads>) -> Self {
        Candidates { reloads, trial: None }
    }

    /// The next candidate that can take over. Those that cannot are told why. Can be dropped and asked again.
    pub(super) async fn next(&mut self, life: &Life) -> Ready {
        loop {
            let Some(trial) = &mut self.trial else {
                let candidate = self.receive().await;
                self.trial = Some(Trial::of(candidate, life));
                continue;
            };
            let outcome = tokio::select! {
                biased; // what is ready takes over, also at the last moment
                outcome = &mut trial.running => Some(outcome),
                () = trial.applicant.withdrawn() => None,
            };
            let Some(Trial { applicant, changes, .. }) = self.trial.take() else { continue };
            match outcome {
                None => applicant.answer(Err(Rejection::Withdrawn)),
                Some(Ok(settings)) => {
                    if let Some(ready) = Ready::new(applicant, changes, settings, life) {
                        return ready;
                    }
                }
                Some(Err(error)) => applicant.answer(Err(Rejection::Startup(error.to_string()))),
            }
        }
    }

    async fn receive(&mut self) -> Candidate {
        if let Some(reloads) = &mut self.reloads
            && let Some(candidate) = reloads.recv().await
        {
            return candidate;
        }
        // Nobody is there any more who could send one.
        self.reloads = None;
        std::future::pending().await
    }
}

impl Drop for Candidates {
    /// Those that wait are told that the operator ends.
    fn drop(&mut self) {
        let Some(reloads) = &mut self.reloads else { return };
        reloads.close();
        while let Ok(candidate) = reloads.try_recv() {
            drop(Applicant(Some(candidate)));
        }
    }
}

impl Trial {
    fn of(candidate: Candidate, life: &Life) -> Self {
        let present = life.current.get();
        let registry = &candidate.generation.registry;
        let changes = Changes::between(&present.generation.registry, registry);
        let is_new = |it: &Arc<Handler>| {
            changes.added.iter().chain(&changes.changed).any(|new| Arc::ptr_eq(new, it))
        };
        let mut handlers = registry.activities(Kind::Startup);
        handlers.retain(is_new);
        // Their changes hold if they all succeed, and then at once.
        let settings = Arc::new(Mutex::new(life.settings()));
        let activity = Activity {
            kind: Kind::Startup,
            handlers,
            settings: Arc::clone(&settings),
            memo: life.memo.clone(),
            logins: NativeLogins::default(),
        };
        let (scripts, clock) = (Arc::clone(&life.scripts), life.steady);
        let running = Box::pin(async move {
            let execution = locked(&settings).execution;
            let facilities = &present.facilities;
            let runner = Runner { scripts: &*scripts, clock, settings: &execution, facilities };
            activities::run(runner, &activity).await?;
            Ok(locked(&settings))
        });
        Trial { applicant: Applicant(Some(candidate)), changes, running }
    }
}

impl Applicant {
    /// Waits until nobody wants it any more.
    async fn withdrawn(&self) {
        match &self.0 {
            Some(candidate) => candidate.withdrawn.cancelled().await,
            None => std::future::pending().await,
        }
    }

    fn answer(mut self, verdict: Result<Changes, Rejection>) {
        if let Some(candidate) = self.0.take() {
            // Perhaps nobody wants to know.
            let _unheard = candidate.verdict.send(verdict);
        }
    }
}

impl Drop for Applicant {
    fn drop(&mut self) {
        if let Some(candidate) = self.0.take() {
            let _unheard = candidate.verdict.send(Err(Rejection::Ending));
        }
    }
}

impl Ready {
    fn new(
        applicant: Applicant,
        changes: Changes,
        settings: Settings,
        life: &Life,
    ) -> Option<Self> {
        let number = life.current.get().generation.number + 1;
        let generation = applicant.0.as_ref()?.generation.clone();
        let generation = Generation { number, ..generation };
        let settings = Some(settings).filter(|it| *it != life.settings());
        Some(Ready { generation, changes, settings, applicant })
    }

    /// It cannot take over after all.
    pub(super) fn refuse(self, rejection: Rejection) {
        self.applicant.answer(Err(rejection));
    }

    /// It has taken over.
    pub(super) fn confirm(self) {
        let Ready { changes, applicant, .. } = self;
        applicant.answer(Ok(changes));
    }
}

fn locked(settings: &Mutex<Settings>) -> Settings {
    settings.lock().clone()
}
