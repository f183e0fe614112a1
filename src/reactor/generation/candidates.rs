//! Receives new generations of scripts, one after another, and prepares them to take over.
//!
//! A candidate first runs its new or changed start-up handlers, while the live generation serves. If they fail, the live generation
//! keeps running. Before: `ports/reloads.rs`. After: `reactor/operator/serve.rs`, where the candidate takes over.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::LiveGeneration;
use crate::handling::{
    activities::{self, Activity, ActivityError},
    run::HandlerRunner,
};
use crate::logic::{
    generation::{Changes, Generation},
    handlers::handler::{Handler, Kind},
};
use crate::ports::{BoxFuture, Candidate, NativeLogins, Rejection, Reloads};
use crate::reactor::generation::{digest_key, shared::OperatorContext};
use crate::settings::Settings;

/// The candidates of an operator.
pub(in crate::reactor) struct Candidates {
    /// `None` without hot reload, or after its end.
    reloads: Option<Reloads>,
    starting: Option<Starting>,
}

/// A candidate whose start-up handlers are running.
struct Starting {
    candidate: Undecided,
    changes: Changes,
    running: BoxFuture<'static, Result<Settings, ActivityError>>,
}

/// A candidate without a verdict. Dropping it sends the verdict that the operator is stopping.
struct Undecided(Option<Candidate>);

/// A candidate that is ready to take over.
pub(in crate::reactor) struct ReadyCandidate {
    /// Its declarations and its version.
    pub(in crate::reactor) generation: Generation,
    /// The differences from the live generation.
    pub(in crate::reactor) changes: Changes,
    /// The settings, if the start-up handlers of the candidate have changed them.
    pub(in crate::reactor) settings: Option<Settings>,
    candidate: Undecided,
}

impl Candidates {
    /// Receives candidates from `reloads`, if hot reload is enabled.
    pub(in crate::reactor) fn new(reloads: Option<Reloads>) -> Self {
        Candidates { reloads, starting: None }
    }

    /// Returns the next candidate that can take over from the live generation; rejects those that cannot. Cancel-safe.
    pub(in crate::reactor) async fn next(
        &mut self,
        operator: &OperatorContext,
        live: &Arc<LiveGeneration>,
    ) -> ReadyCandidate {
        loop {
            let Some(starting) = &mut self.starting else {
                let candidate = self.receive().await;
                self.starting = Some(Starting::of(candidate, operator, live));
                continue;
            };
            let outcome = tokio::select! {
                biased; // a candidate that is ready takes over, even if it is withdrawn at the same time
                outcome = &mut starting.running => Some(outcome),
                () = starting.candidate.withdrawn() => None,
            };
            let Some(Starting { candidate, changes, .. }) = self.starting.take() else { continue };
            let settings = match outcome {
                Some(Ok(settings)) => Some(settings).filter(|it| *it != operator.settings()),
                Some(Err(error)) => {
                    candidate.decide(Err(Rejection::Startup(error.to_string())));
                    continue;
                }
                None => {
                    candidate.decide(Err(Rejection::Withdrawn));
                    continue;
                }
            };
            let Some(Candidate { generation, .. }) = &candidate.0 else { continue };
            let version = live.generation.version.next_generation();
            let generation = Generation { version, ..generation.clone() };
            return ReadyCandidate { generation, changes, settings, candidate };
        }
    }

    async fn receive(&mut self) -> Candidate {
        if let Some(reloads) = &mut self.reloads
            && let Some(candidate) = reloads.recv().await
        {
            return candidate;
        }
        // All senders are dropped.
        self.reloads = None;
        std::future::pending().await
    }
}

impl Drop for Candidates {
    /// Rejects the waiting candidates, because the operator is stopping.
    fn drop(&mut self) {
        let Some(reloads) = &mut self.reloads else { return };
        reloads.close();
        while let Ok(candidate) = reloads.try_recv() {
            drop(Undecided(Some(candidate)));
        }
    }
}

impl Starting {
    fn of(candidate: Candidate, operator: &OperatorContext, live: &Arc<LiveGeneration>) -> Self {
        let registry = &candidate.generation.registry;
        let changes = Changes::between(&live.generation.registry, registry);
        let is_new = |it: &Arc<Handler>| {
            changes.added.iter().chain(&changes.changed).any(|new| Arc::ptr_eq(new, it))
        };
        let mut handlers = registry.activities(Kind::Startup);
        handlers.retain(is_new);
        // Their settings take effect together, and only if all of these handlers succeed.
        let settings = Arc::new(Mutex::new(operator.settings()));
        let activity = Activity {
            kind: Kind::Startup,
            handlers,
            settings: Arc::clone(&settings),
            memo: operator.memo.clone(),
            logins: NativeLogins::default(),
            server: None,
            scheduled: None,
        };
        let (scripts, clock) = (Arc::clone(&operator.scripts), operator.steady);
        let services = Arc::clone(&live.services);
        let registry = registry.clone();
        let running = Box::pin(async move {
            let execution = locked(&settings).execution;
            let (scripts, services) = (&*scripts, &services);
            let runner = HandlerRunner { scripts, clock, settings: &execution, services };
            activities::run(runner, &activity).await?;
            let settings = locked(&settings);
            let keyed = digest_key::with_key(&settings, &registry, &services.kube).await;
            Ok(keyed.map_or(settings, |it| Settings::clone(&it)))
        });
        Starting { candidate: Undecided(Some(candidate)), changes, running }
    }
}

impl Undecided {
    /// Waits until the candidate is withdrawn.
    async fn withdrawn(&self) {
        match &self.0 {
            Some(candidate) => candidate.withdrawn.cancelled().await,
            None => std::future::pending().await,
        }
    }

    fn decide(mut self, verdict: Result<Changes, Rejection>) {
        if let Some(candidate) = self.0.take() {
            // The sender of the candidate may no longer wait.
            let _unheard = candidate.verdict.send(verdict);
        }
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        if let Some(candidate) = self.0.take() {
            let _unheard = candidate.verdict.send(Err(Rejection::Ending));
        }
    }
}

impl ReadyCandidate {
    /// Rejects the candidate after all.
    pub(in crate::reactor) fn reject(self, rejection: Rejection) {
        self.candidate.decide(Err(rejection));
    }

    /// Confirms that the candidate has taken over.
    pub(in crate::reactor) fn confirm(self) {
        let ReadyCandidate { changes, candidate, .. } = self;
        candidate.decide(Ok(changes));
    }
}

fn locked(settings: &Mutex<Settings>) -> Settings {
    settings.lock().clone()
}
