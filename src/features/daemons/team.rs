//! All daemons and timers of one operator: the owner of their tasks, who also stops them all.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, future, stream::FuturesUnordered};
use serde_json::Value;
use tokio::{
    sync::Notify,
    task,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Base, daemon::Daemon, runner::Runner};
use crate::logic::{
    object::Object,
    stopping::{self, StopReason},
};
use crate::ports::Pauses;
use crate::settings::Background;

/// What is left for those that were given up, before they are cancelled at the end of the operator.
const HUNG_TIMEOUT: Duration = Duration::from_secs(5);

/// The daemons and timers that run.
#[derive(Debug)]
pub struct Team {
    /// Their tasks, and the tasks that see the last ones of gone objects off.
    tasks: TaskTracker,
    members: Mutex<Members>,
    /// Each end of one of them.
    exits: Notify,
    start: Instant,
    /// Stands where calls have the object as it was at their beginning: those in the background see it as it is.
    nobody: Arc<Object>,
}

#[derive(Debug, Default)]
struct Members {
    running: BTreeMap<u64, Arc<Daemon>>,
    /// How many there ever were: the next key.
    hired: u64,
    /// The operator ends: nobody starts any more.
    is_closed: bool,
}

/// Its owner is running; dropped when it is not, however that came about.
pub(super) struct Membership {
    team: Arc<Team>,
    key: u64,
    daemon: Arc<Daemon>,
}

impl Default for Team {
    fn default() -> Self {
        Team {
            tasks: TaskTracker::new(),
            members: Mutex::default(),
            exits: Notify::new(),
            start: Instant::now(),
            nobody: Arc::new(Object::from_value(Value::Null)),
        }
    }
}

impl Team {
    /// The clock of schedules and of changes.
    pub(super) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// An object that is not there.
    pub(super) fn nobody(&self) -> Arc<Object> {
        Arc::clone(&self.nobody)
    }

    /// Starts one; tells whether it did, for at the end of the operator nobody starts.
    pub(super) fn hire(self: &Arc<Self>, runner: Runner) -> bool {
        let Some(membership) = self.admit(&runner.daemon) else { return false };
        self.tasks.spawn(async move {
            let _membership = membership;
            runner.live().await;
        });
        true
    }

    fn admit(self: &Arc<Self>, daemon: &Arc<Daemon>) -> Option<Membership> {
        let mut members = self.lock();
        if members.is_closed {
            return None;
        }
        members.hired += 1;
        let key = members.hired;
        members.running.insert(key, Arc::clone(daemon));
        Some(Membership { team: Arc::clone(self), key, daemon: Arc::clone(daemon) })
    }

    /// Sees one of a gone object off, in the background.
    pub(super) fn escort(&self, daemon: Arc<Daemon>, base: &Arc<Base>) {
        let base = Arc::clone(base);
        self.tasks.spawn(async move { daemon.escort(&base.settings.background).await });
    }

    /// Stops all whenever the operator is paused, until `stop`. It is for cycles to start them again.
    pub async fn heed(&self, pauses: &Pauses, settings: &Background, stop: CancellationToken) {
        let mut is_paused = false;
        let mut stopping = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased; // the end first: it stops all in its own way; then what is under way
                () = stop.cancelled() => return,
                Some(()) = stopping.next(), if !stopping.is_empty() => {}
                () = pauses.until(!is_paused) => {
                    is_paused = !is_paused;
                    if is_paused {
                        stopping.push(self.stop(StopReason::OperatorPausing, settings));
                    }
                }
            }
        }
    }

    /// Stops all and waits until they have ended. Nobody starts any more.
    pub async fn end(&self, settings: &Background) {
        self.lock().is_closed = true;
        self.tasks.close();
        self.stop(StopReason::OperatorExiting, settings).await;
        if time::timeout(HUNG_TIMEOUT, self.tasks.wait()).await.is_err() {
            let hung = self.all();
            tracing::debug!(
                target: "kopf.running",
                "Hung daemons and timers are cancelled: {} left.",
                hung.len()
            );
            for daemon in hung {
                daemon.ask(StopReason::DaemonCancelled);
            }
            // A task that is cancelled drops what it waits for, so this takes no time.
            self.tasks.wait().await;
        }
    }

    /// Cancels all at once, because another replica may act from now on. Nobody starts any more.
    pub async fn cut(&self) {
        self.lock().is_closed = true;
        self.tasks.close();
        for daemon in self.all() {
            daemon.ask(StopReason::DaemonCancelled);
        }
        self.tasks.wait().await;
    }

    /// Asks all to stop and presses those that do not, all at once, until each has ended or is given up.
    async fn stop(&self, reason: StopReason, settings: &Background) {
        let asked: Vec<_> = self.all().into_iter().filter(|it| it.ask(reason)).collect();
        self.instant_exits(asked.clone(), settings).await;
        let (ended, left): (Vec<_>, Vec<_>) = asked.into_iter().partition(|it| it.has_ended());
        for daemon in ended {
            daemon.log(&stopping::graceful(&daemon.handler));
        }
        future::join_all(left.iter().map(|it| it.press(settings))).await;
    }

    /// A chance to exit before anything else is done. It lasts as long as some do exit: thousands need their time.
    async fn instant_exits(&self, mut left: Vec<Arc<Daemon>>, settings: &Background) {
        let mut turns = 0;
        loop {
            // Registered before the look, so that no exit is missed.
            let exit = self.exits.notified();
            while left.pop_if(|it| it.has_ended()).is_some() {}
            if left.is_empty() {
                return;
            }
            let Some(timeout) = settings.instant_exit_timeout else {
                if turns >= settings.instant_exit_zero_time_cycles {
                    return;
                }
                turns += 1;
                task::yield_now().await;
                continue;
            };
            if time::timeout(timeout, exit).await.is_err() {
                return;
            }
        }
    }

    fn all(&self) -> Vec<Arc<Daemon>> {
        self.lock().running.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        // Each change is one assignment or one call of a map.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.team.lock().running.remove(&self.key);
        self.daemon.stopped.set(StopReason::Done);
        self.team.exits.notify_waiters();
    }
}
