//! Runs the operator's own handlers: start-up, clean-up, login, probe, tunnel, schedules.
//!
//! The contract is `tests/vectors/activities.json`. All handlers of an activity run one after another, in rounds; those that failed
//! temporarily run again in a later round. Nothing is stored.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time;

use super::{
    run::{HandlerRunner, Try, since},
    time_slice::TimeSlice,
};
use crate::call::{ActivityCause, Cause, Current, Logger, Memo, Scripts};
use crate::logic::{
    admission::tunnel,
    handlers::{
        handler::{Handler, Kind},
        outcome::Outcome,
    },
};
use crate::ports::{AskLogin, AskTunnel, Clock, NativeLogins};
use crate::settings::{ExecutionSettings, Settings};

/// An activity and the arguments of its handlers.
#[derive(Clone)]
pub struct Activity {
    /// Startup, cleanup, login, probe, tunnel, or a schedule.
    pub kind: Kind,
    /// Its handlers, in the order of declaration.
    pub handlers: Vec<Arc<Handler>>,
    /// The kwarg `settings`, which startup handlers may change.
    pub settings: Arc<Mutex<Settings>>,
    /// The operator's memo, which is the kwarg `memo`.
    pub memo: Memo,
    /// The sources of native logins; used only by login handlers.
    pub logins: NativeLogins,
    /// The kwarg `server`; used only by tunnel handlers.
    pub server: Option<Arc<Value>>,
    /// The kwarg `scheduled`; used only by schedules.
    pub scheduled: Option<Timestamp>,
}

/// An activity that runs repeatedly, each time with the handlers of the generation that took over last: login, probe or tunnel.
#[derive(Clone)]
pub struct RepeatedActivity {
    /// Login, probe or tunnel.
    pub kind: Kind,
    /// The source of the handlers.
    pub current: Current,
    /// The handlers to run if that generation has none: whether scripts log in is decided at the start.
    pub fallback: Vec<Arc<Handler>>,
    /// The kwarg `settings`.
    pub settings: Arc<Mutex<Settings>>,
    /// The operator's memo.
    pub memo: Memo,
    /// The scripts whose functions are called.
    pub scripts: Arc<dyn Scripts>,
    /// The clock for start times and limits.
    pub clock: Clock,
    /// The default options of handlers.
    pub execution: ExecutionSettings,
}

impl RepeatedActivity {
    /// Runs all handlers to their end; see [`run`].
    ///
    /// # Errors
    /// If handlers failed permanently.
    pub async fn run(&self) -> Result<BTreeMap<Arc<str>, Value>, ActivityError> {
        self.run_with(NativeLogins::default(), None).await
    }

    /// Converts login handlers into the callback that the cluster adapter calls.
    pub fn into_login(self) -> AskLogin {
        let login = Arc::new(self);
        Arc::new(move |logins| {
            let login = Arc::clone(&login);
            Box::pin(async move {
                login.run_with(logins, None).await.map_err(|error| error.to_string())
            })
        })
    }

    /// Converts tunnel handlers into the callback that the webhook server calls.
    pub fn into_tunnel(self) -> AskTunnel {
        let tunnel = Arc::new(self);
        Arc::new(move |server| {
            let tunnel = Arc::clone(&tunnel);
            Box::pin(async move {
                let returned = tunnel.run_with(NativeLogins::default(), Some(server)).await;
                let returned = returned.map_err(|error| error.to_string())?;
                let first = returned.into_iter().next();
                let (id, value) = first.ok_or("the tunnel handlers return no URL")?;
                tunnel::client_config(&value)
                    .map_err(|it| format!("the tunnel handler '{id}': {it}"))
            })
        })
    }

    /// Runs all handlers with these sources of native logins, and this webhook server.
    ///
    /// # Errors
    /// If handlers failed permanently.
    pub async fn run_with(
        &self,
        logins: NativeLogins,
        server: Option<Arc<Value>>,
    ) -> Result<BTreeMap<Arc<str>, Value>, ActivityError> {
        let live = self.current.get();
        let runner = HandlerRunner {
            scripts: &*self.scripts,
            clock: self.clock,
            settings: &self.execution,
            services: &live.services,
        };
        let own = live.generation.registry.activities(self.kind);
        let handlers = if own.is_empty() { self.fallback.clone() } else { own };
        let (settings, memo) = (Arc::clone(&self.settings), self.memo.clone());
        let (kind, scheduled) = (self.kind, None);
        let activity = Activity { kind, handlers, settings, memo, logins, server, scheduled };
        run(runner, &activity).await
    }
}

/// One or more handlers failed permanently; all others have finished.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{activity} failed: {}", list(failures))]
pub struct ActivityError {
    /// The activity, as the kwarg `activity` names it.
    pub activity: &'static str,
    /// Error messages by handler id.
    pub failures: BTreeMap<Arc<str>, String>,
}

/// The in-memory progress of one handler.
struct ActivityProgress {
    handler: Arc<Handler>,
    started: Timestamp,
    retries: u64,
    /// The time of the next attempt.
    due: Timestamp,
    finished: Option<Outcome>,
}

/// Runs all handlers to their end. Returns the results by handler id.
///
/// # Errors
/// If handlers failed permanently; all others have finished then.
pub async fn run(
    runner: HandlerRunner<'_>,
    activity: &Activity,
) -> Result<BTreeMap<Arc<str>, Value>, ActivityError> {
    let now = runner.clock.now();
    let fresh = |handler: &Arc<Handler>| {
        let handler = Arc::clone(handler);
        ActivityProgress { handler, started: now, retries: 0, due: now, finished: None }
    };
    let mut all = activity.handlers.iter().map(fresh).collect::<Vec<_>>();
    while let Some(next) = all.iter().filter(|it| it.finished.is_none()).map(|it| it.due).min() {
        time::sleep(since(runner.clock.now(), next)).await;
        let (round_start, mut slice) = (runner.clock.now(), TimeSlice::start());
        for progress in all.iter_mut().filter(|it| it.finished.is_none() && it.due <= round_start) {
            slice.yield_if_over().await;
            attempt(runner, activity, progress).await;
        }
    }
    conclude(name(activity.kind), all)
}

async fn attempt(runner: HandlerRunner<'_>, activity: &Activity, progress: &mut ActivityProgress) {
    let cause = ActivityCause {
        activity: name(activity.kind),
        settings: Arc::clone(&activity.settings),
        logins: activity.logins,
        server: activity.server.clone(),
        scheduled: activity.scheduled.map(Box::new),
    };
    let attempt = Try {
        handler: Arc::clone(&progress.handler),
        retries: progress.retries,
        started: progress.started,
        cause: Cause::Activity(cause),
        memo: activity.memo.clone(),
        logger: Logger::of_activity().named(name(activity.kind)),
    };
    let outcome = runner.run(attempt).await;
    progress.retries += 1;
    if outcome.last {
        progress.finished = Some(outcome);
    } else {
        let now = runner.clock.now();
        progress.due = now.saturating_add(outcome.delay.unwrap_or_default()).unwrap_or(now);
    }
}

fn conclude(
    activity: &'static str,
    all: Vec<ActivityProgress>,
) -> Result<BTreeMap<Arc<str>, Value>, ActivityError> {
    let (mut results, mut failures) = (BTreeMap::new(), BTreeMap::new());
    for (id, outcome) in
        all.into_iter().filter_map(|it| Some((Arc::clone(&it.handler.id), it.finished?)))
    {
        if let Some(error) = outcome.error {
            failures.insert(id, error.message);
        } else if let Some(result) = outcome.result {
            results.insert(id, result);
        }
    }
    if failures.is_empty() { Ok(results) } else { Err(ActivityError { activity, failures }) }
}

/// Returns the kwarg `activity`.
fn name(kind: Kind) -> &'static str {
    let names = [
        (Kind::Cleanup, "cleanup"),
        (Kind::Login, "authentication"),
        (Kind::Probe, "probe"),
        (Kind::Tunnel, "tunnel"),
        (Kind::Every, "schedule"),
        (Kind::Cron, "schedule"),
    ];
    names.into_iter().find(|(it, _)| *it == kind).map_or("startup", |(_, name)| name)
}

fn list(failures: &BTreeMap<Arc<str>, String>) -> String {
    failures.iter().map(|(id, message)| format!("'{id}': {message}")).collect::<Vec<_>>().join("; ")
}
