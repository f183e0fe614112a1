//! All daemons and timers of one operator: the owner of their tasks and of those that rest, who also stops them all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
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

use super::{
    Base,
    daemon::Daemon,
    object::Home,
    roles::Role,
    runner::{Runner, Work},
};
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
    /// The tasks of those that work, and the tasks that see the last ones of gone objects off.
    tasks: TaskTracker,
    members: Mutex<Members>,
    /// Each end of one of them.
    exits: Notify,
    /// What the alarm waits for is not the next any more.
    replanned: Notify,
    start: Instant,
    /// Stands where calls have the object as it was at their beginning: those in the background see it as it is.
    nobody: Arc<Object>,
}

#[derive(Default)]
struct Members {
    running: BTreeMap<u64, Member>,
    /// When those that rest are due.
    due: BTreeSet<(Duration, u64)>,
    /// How many there ever were: the next key.
    hired: u64,
    /// There is a task that wakes those that are due.
    has_alarm: bool,
    /// The operator ends: nobody starts any more.
    is_closed: bool,
}

enum Member {
    /// Has a task.
    Working(Arc<Daemon>),
    /// Has none.
    Resting(Box<Resting>),
}

struct Resting {
    runner: Box<Runner>,
    due: Duration,
}

/// The task that wakes those that are due. It is there while somebody rests.
struct Alarm {
    team: Arc<Team>,
    is_over: bool,
}

impl Default for Team {
    fn default() -> Self {
        Team {
            tasks: TaskTracker::new(),
            members: Mutex::default(),
            exits: Notify::new(),
            replanned: Notify::new(),
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

    /// Starts one; none at the end of the operator.
    pub(super) fn hire(
        &self,
        base: &Arc<Base>,
        home: &Arc<Home>,
        role: Arc<Role>,
    ) -> Option<Arc<Daemon>> {
        let mut members = self.lock();
        if members.is_closed {
            return None;
        }
        members.hired += 1;
        let key = members.hired;
        let daemon = Daemon::new(Arc::clone(base), Arc::clone(home), role, key);
        let daemon = Arc::new(daemon);
        members.running.insert(key, Member::Working(Arc::clone(&daemon)));
        drop(members);
        self.start(Box::new(Runner::new(Arc::clone(&daemon))));
        Some(daemon)
    }

    fn start(&self, runner: Box<Runner>) {
        self.tasks.spawn(Work::new(runner));
    }

    /// Lets one rest until it is due or must stop, and ends its task. Gives it back if it must stop already.
    pub(super) fn rest(runner: Box<Runner>, due: Duration) -> Option<Box<Runner>> {
        let team = Arc::clone(&runner.base().team);
        let daemon = Arc::clone(runner.daemon());
        let mut members = team.lock();
        // Looked at under the lock, which those who ask it to stop take afterwards.
        if daemon.stopped.is_set() {
            return Some(runner);
        }
        let key = daemon.key;
        members.due.insert((due, key));
        members.running.insert(key, Member::Resting(Box::new(Resting { runner, due })));
        if !mem::replace(&mut members.has_alarm, true) {
            let alarm = Alarm { team: Arc::clone(&team), is_over: false };
            team.tasks.spawn(alarm.ring());
        } else if members.due.first() == Some(&(due, key)) {
            team.replanned.notify_one();
        }
        None
    }

    /// Lets one go on that rests; the others do so anyway.
    pub(super) fn wake(&self, key: u64) {
        let mut members = self.lock();
        let Some(runner) = members.wake(key) else { return };
        if members.due.is_empty() {
            self.replanned.notify_one();
        }
        drop(members);
        self.start(runner);
    }

    /// One has ended.
    pub(super) fn leave(&self, daemon: &Daemon) {
        self.lock().running.remove(&daemon.key);
        daemon.stopped.set(StopReason::Done);
        self.exits.notify_waiters();
    }

    /// Sees one of a gone object off, in the background.
    pub(super) fn escort(&self, daemon: Arc<Daemon>, reason: StopReason, base: &Arc<Base>) {
        let base = Arc::clone(base);
        self.tasks.spawn(async move { daemon.escort(reason, &base.settings.background).await });
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
            daemon.log(&stopping::graceful(&daemon.handler()));
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
        self.lock().running.values().map(|it| Arc::clone(it.daemon())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        // Each change is one assignment or one call of a map.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    fn wake(&mut self, key: u64) -> Option<Box<Runner>> {
        let member = self.running.get_mut(&key)?;
        let daemon = Arc::clone(member.daemon());
        match mem::replace(member, Member::Working(daemon)) {
            Member::Working(_) => None,
            Member::Resting(resting) => {
                self.due.remove(&(resting.due, key));
                Some(resting.runner)
            }
        }
    }

    fn wake_next(&mut self, now: Duration) -> Option<Box<Runner>> {
        let (_, key) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.wake(*key)
    }
}

impl Member {
    fn daemon(&self) -> &Arc<Daemon> {
        match self {
            Member::Working(daemon) => daemon,
            Member::Resting(resting) => resting.runner.daemon(),
        }
    }
}

impl Alarm {
    async fn ring(mut self) {
        while let Some(pause) = self.pause() {
            tokio::select! {
                biased; // who is due stays so
                () = self.team.replanned.notified() => {}
                () = time::sleep(pause) => self.wake(),
            }
        }
    }

    /// How long until the next one is due; `None` if nobody rests: then this one is over.
    fn pause(&mut self) -> Option<Duration> {
        let now = self.team.uptime();
        let mut members = self.team.lock();
        let next = members.due.first().map(|(due, _)| due.saturating_sub(now));
        self.is_over = next.is_none();
        members.has_alarm = next.is_some();
        next
    }

    fn wake(&self) {
        let now = self.team.uptime();
        // In a statement of its own: the lock is free again when one starts.
        while let Some(runner) = { self.team.lock().wake_next(now) } {
            self.team.start(runner);
        }
    }
}

impl Drop for Alarm {
    /// If the runtime goes before the team has ended, nobody wakes those that rest.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut members = self.team.lock();
        members.has_alarm = false;
        let due = mem::take(&mut members.due);
        let lost: Vec<_> = due.into_iter().filter_map(|(_, key)| members.wake(key)).collect();
        drop(members);
        drop(lost);
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} that run, {} of them rest", self.running.len(), self.due.len())
    }
}
