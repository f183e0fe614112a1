//! All daemons and timers of one operator: owns their tasks, and stops them.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures::{StreamExt as _, future, stream::FuturesUnordered};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use slab::Slab;
use tokio::{
    sync::Notify,
    task,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Base,
    current_handlers::CurrentHandler,
    daemon::{Daemon, DaemonKey, Special},
    driver::Driver,
    exclusion::ChangeLock,
    fair_queue::FairQueue,
    level::{LevelBase, ReconcileLevel},
    object::DaemonShared,
    turns::Turns,
};
use crate::features::reconcile::UnownedChildren;
use crate::heap;
use crate::logic::{
    background::stopping::{self, StopReason},
    object::Object,
    text::nanos::Nanos,
};
use crate::ports::Pauses;
use crate::settings::BackgroundSettings;

/// Time until daemons whose stop was given up are cancelled, at the end of the operator.
const HUNG_TIMEOUT: Duration = Duration::from_secs(5);

/// The running daemons and timers.
#[derive(Debug)]
pub struct Daemons {
    /// The task that runs them, and the tasks that stop those of deleted objects.
    tasks: TaskTracker,
    /// Cancelled when the operator is dropped before it has ended.
    abandoned: CancellationToken,
    members: Mutex<Members>,
    /// The woken daemons, which run in this order.
    woken: Mutex<FairQueue<Arc<Daemon>>>,
    /// Notified when a daemon is woken.
    wakeups: Notify,
    /// Notified when a daemon ends.
    exits: Notify,
    /// The turns of reconcile handlers.
    pub(super) turns: Turns,
    start: Instant,
    /// A placeholder for the object in the cause of a call: daemons and timers read the live object instead.
    placeholder: Arc<Object>,
}

#[derive(Default)]
struct Members {
    /// Each at the index of its key.
    running: Slab<Arc<Daemon>>,
    /// When the waiting ones are due. The index of one that was dropped meanwhile may be that of another, which is then woken in vain.
    due: BTreeSet<(Nanos, u32)>,
    /// The number of daemons spawned so far.
    spawned: u32,
    /// Whether the driver task is running.
    has_driver: bool,
    /// Whether the operator is stopping: no new daemons start.
    is_closed: bool,
}

/// The inputs of a starting daemon or timer.
pub(super) struct DaemonStart<'a> {
    pub(super) current: Arc<CurrentHandler>,
    /// The object as its cycle sees it. The live object stays compressed until the first call.
    pub(super) object: &'a Object,
    /// The unowned children of the previous version of a reconcile handler.
    pub(super) unowned: UnownedChildren,
    /// The lock of an exclusive timer; `None` for all others.
    pub(super) lock: Option<ChangeLock>,
}

/// The next wait of the driver when no daemon is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverWait {
    /// The next daemon is due after this time.
    Pause(Duration),
    /// A wake-up: nothing is scheduled.
    Wakeup,
    /// Nothing: no daemons are left.
    End,
}

impl Default for Daemons {
    fn default() -> Self {
        Daemons {
            tasks: TaskTracker::new(),
            abandoned: CancellationToken::new(),
            members: Mutex::default(),
            woken: Mutex::default(),
            wakeups: Notify::new(),
            exits: Notify::new(),
            turns: Turns::default(),
            start: Instant::now(),
            placeholder: Arc::new(Object::from_value(Value::Null)),
        }
    }
}

impl Daemons {
    /// Returns the clock of schedules and of changes.
    pub(super) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns a placeholder object.
    pub(super) fn placeholder(&self) -> Arc<Object> {
        Arc::clone(&self.placeholder)
    }

    /// Starts a daemon or timer; returns `None` at the end of the operator.
    pub(super) fn spawn(
        self: &Arc<Self>,
        base: &Arc<Base>,
        shared: &Arc<DaemonShared>,
        start: DaemonStart<'_>,
    ) -> Option<Arc<Daemon>> {
        let mut members = self.lock();
        if members.is_closed {
            return None;
        }
        let number = members.spawned.wrapping_add(1);
        let key = DaemonKey { index: members.running.vacant_key().try_into().ok()?, number };
        members.spawned = number;
        let DaemonStart { current, object, unowned, lock } = start;
        let bound = current.get();
        let daemon = Arc::new_cyclic(|daemon| {
            let special = if bound.handler.is_reconciler() {
                let of = LevelBase { bound: &bound, metrics: &base.metrics, unowned };
                let level = ReconcileLevel::new(daemon, object.header(), of);
                Some(Special::Reconciler(Box::new(level)))
            } else {
                lock.map(Special::Exclusive)
            };
            Daemon::new((Arc::clone(base), Arc::clone(shared), current, key), special)
        });
        members.running.insert(Arc::clone(&daemon));
        if !std::mem::replace(&mut members.has_driver, true) {
            self.spawn_task(Driver::of(self).run());
        }
        drop(members);
        daemon.enqueue();
        Some(daemon)
    }

    /// Wakes a daemon: queues it for the driver.
    pub(super) fn enqueue(&self, daemon: Arc<Daemon>) {
        let script = daemon.handler().function.script;
        self.woken.lock().push(script, daemon);
        self.wakeups.notify_one();
    }

    /// Takes the next woken daemon from the queue.
    pub(super) fn next_woken(&self) -> Option<Arc<Daemon>> {
        let daemon = self.woken.lock().pop();
        daemon.inspect(|it| it.clear_wakeup())
    }

    /// Waits until a daemon is woken.
    pub(super) async fn wakeup(&self) {
        self.wakeups.notified().await;
    }

    /// Schedules a daemon for this moment.
    pub(super) fn schedule(&self, due: Nanos, key: DaemonKey) {
        heap::lasting(|| self.lock().due.insert((due, key.index)));
    }

    /// Removes a daemon from the schedule.
    pub(super) fn unschedule(&self, due: Nanos, key: DaemonKey) {
        self.lock().due.remove(&(due, key.index));
    }

    /// Wakes the daemons that are due.
    pub(super) fn enqueue_due(&self) {
        let now = Nanos::from(self.uptime());
        let mut members = self.lock();
        while let Some((due, index)) = members.due.first().copied().filter(|(due, _)| *due <= now) {
            members.due.remove(&(due, index));
            if let Some(daemon) = members.of(index) {
                daemon.enqueue();
            }
        }
    }

    /// Returns the next wait of the driver when no daemon is woken.
    pub(super) fn next(&self) -> DriverWait {
        let now = self.uptime();
        let mut members = self.lock();
        if members.running.is_empty() {
            members.has_driver = false;
            return DriverWait::End;
        }
        let due = members.due.first().map(|(due, _)| Duration::from(*due));
        due.map_or(DriverWait::Wakeup, |due| DriverWait::Pause(due.saturating_sub(now)))
    }

    /// Removes a daemon that has ended.
    pub(super) fn finish(&self, daemon: &Daemon) {
        let member = self.lock().remove(daemon.key);
        // Dropped after the lock is released.
        drop(member);
        if let Some(level) = daemon.level() {
            level.end(&daemon.bound().services);
        }
        daemon.stopped.set(StopReason::Done);
        self.exits.notify_waiters();
    }

    /// Stops a daemon of a deleted object, in a separate task.
    pub(super) fn stop_detached(&self, daemon: Arc<Daemon>, reason: StopReason, base: &Arc<Base>) {
        let base = Arc::clone(base);
        self.spawn_task(
            async move { daemon.stop_detached(reason, &base.settings.background).await },
        );
    }

    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased; // no calls after the operator was dropped
                () = abandoned.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Stops all daemons whenever the operator is paused, until `stop`. The cycles of the objects start them again.
    pub async fn stop_on_pause(
        &self,
        pauses: &Pauses,
        settings: &BackgroundSettings,
        stop: CancellationToken,
    ) {
        let mut is_paused = false;
        let mut stopping = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased; // the end first, which stops all daemons by itself; then stops in progress
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

    /// Stops all daemons and waits until they have ended. No new ones start.
    pub async fn end(&self, settings: &BackgroundSettings) {
        self.lock().is_closed = true;
        self.tasks.close();
        self.stop(StopReason::OperatorExiting, settings).await;
        if time::timeout(HUNG_TIMEOUT, self.tasks.wait()).await.is_err() {
            let hung = self.all();
            tracing::debug!(
                target: "kopf.reactor",
                "Hung daemons and timers are cancelled: {} left.",
                hung.len()
            );
            for daemon in hung {
                daemon.request_stop(StopReason::DaemonCancelled);
            }
            // A cancelled daemon drops what it waits for, so this ends at once.
            self.tasks.wait().await;
        }
    }

    /// Cancels all daemons at once, because another replica may act now. No new ones start.
    pub async fn cancel_all(&self) {
        self.lock().is_closed = true;
        self.tasks.close();
        for daemon in self.all() {
            daemon.request_stop(StopReason::DaemonCancelled);
        }
        self.tasks.wait().await;
    }

    /// Drops all running daemons, because the operator was dropped. Does nothing after [`Daemons::end`].
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// Requests all daemons to stop and escalates, concurrently, until each has ended or is given up.
    async fn stop(&self, reason: StopReason, settings: &BackgroundSettings) {
        let requested: Vec<_> =
            self.all().into_iter().filter(|it| it.request_stop(reason)).collect();
        self.instant_exits(requested.clone(), settings).await;
        let (ended, left): (Vec<_>, Vec<_>) = requested.into_iter().partition(|it| it.has_ended());
        for daemon in ended {
            daemon.log(&stopping::graceful(&daemon.handler()));
        }
        future::join_all(left.iter().map(|it| it.escalate(settings))).await;
    }

    /// Gives daemons time for an instant exit. Continues as long as some of them exit: thousands of daemons take longer than one.
    async fn instant_exits(&self, mut left: Vec<Arc<Daemon>>, settings: &BackgroundSettings) {
        let mut turns = 0;
        loop {
            // Registered before the check, so that no exit is missed.
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

    /// Returns all daemons, in the order in which they started.
    pub(super) fn all(&self) -> Vec<Arc<Daemon>> {
        let mut all: Vec<_> = self.lock().running.iter().map(|(_, it)| Arc::clone(it)).collect();
        all.sort_unstable_by_key(|it| it.key.number);
        all
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        // Each change is one assignment or one call of a map.
        self.members.lock()
    }
}

impl Members {
    fn of(&self, index: u32) -> Option<&Arc<Daemon>> {
        self.running.get(usize::try_from(index).ok()?)
    }

    fn remove(&mut self, key: DaemonKey) -> Option<Arc<Daemon>> {
        self.of(key.index).filter(|it| it.key == key)?;
        self.running.try_remove(usize::try_from(key.index).ok()?)
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} that run, {} of them rest", self.running.len(), self.due.len())
    }
}
