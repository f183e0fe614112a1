//! From the runtime to the threads of a script and back: one job, its waits, its result.
//!
//! A job computes on a thread of its own and asks the runtime to sleep for it, so all waiting goes through tokio's time. Under
//! [`Placement::CurrentRuntime`] a parked blocking task holds the clock while a job computes, and only then: a paused clock
//! jumps exactly when every job waits.

use std::{
    future,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    task::spawn_blocking,
    time::{Instant, sleep},
};
use tracing::Dispatch;

use super::{
    control::{Budget, Common, Control, Wait},
    inline::Inline,
    ledger::Ledger,
    link::Link,
    pool::{Lead, Pool},
    turn::Turns,
};
use crate::call::Stopped;
use crate::logic::handlers::function::ScriptId;
use crate::scripting::{Placement, Terms};

/// The most calls of one script at once, unless the settings say otherwise; each holds a thread, also while it waits.
const RUNNING_MAX: usize = 64;
/// Daemons and timers may take so much of that: their calls last, and the other handlers should always find a thread.
const BACKGROUND_SHARE: (usize, usize) = (3, 4);
/// The most calls of one script that wait for a thread; more are refused, and their handlers retried.
const WAITING_MAX: usize = 10_000;
/// A call that computes for so much longer than its limit is stuck in a function that does not look at it. None is known:
/// this is for those that are not.
const GRACE: Duration = Duration::from_secs(1);

/// Runs jobs of one script.
pub(super) struct Runner {
    pool: Pool,
    inline: Inline,
    placement: Placement,
    common: Arc<Common>,
    /// Threads for all calls, and how many of them daemons and timers may take.
    permits: Permits,
    background: Permits,
    waiting: AtomicUsize,
    /// Calls that have a thread.
    running: Arc<AtomicUsize>,
    /// The script, for messages.
    name: String,
    /// It was told once that threads are short.
    told: AtomicBool,
}

/// Rights to a thread.
struct Permits {
    free: Arc<Semaphore>,
    all: AtomicUsize,
}

/// Why a job gave no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    #[error("too many calls of this script are waiting for a free thread")]
    Busy,
    #[error("cannot start a thread for the script: {0}")]
    NoThread(String),
    #[error("internal error in this call; please report it: {0}")]
    Panicked(String),
    /// It computed for that much longer than its limit, and was given up.
    #[error("the call did not stop at its CPU limit")]
    Stuck(Duration),
}

impl Runner {
    /// For a script with this name, on these terms.
    pub(super) fn new(script: ScriptId, name: &str, terms: &Terms) -> Self {
        let budget = match terms.placement {
            Placement::Threads => Budget::Time(terms.cpu_limit),
            Placement::CurrentRuntime => Budget::Operations(terms.cpu_limit),
        };
        let usage = terms.metrics.usage_of(name, terms.limits.memory_limit);
        let ledger = Ledger::new(terms.limits.memory_limit, usage.clone());
        let turns = Arc::<Turns>::default();
        Runner {
            inline: Inline::new(usage.clone()),
            pool: Pool::new(script, &terms.limits, Arc::clone(&turns), usage),
            placement: terms.placement,
            common: Arc::new(Common::new(budget, turns, ledger, &terms.limits)),
            permits: Permits::new(RUNNING_MAX),
            background: Permits::new(RUNNING_MAX * BACKGROUND_SHARE.0 / BACKGROUND_SHARE.1),
            waiting: AtomicUsize::new(0),
            running: Arc::default(),
            name: name.to_owned(),
            told: AtomicBool::new(false),
        }
    }

    /// Ends all calls that run now, at their next operation; those that wait at once.
    pub(super) fn end_others(&self) {
        self.common.restart();
    }

    /// Returns whether other calls run alongside the caller.
    pub(super) fn is_shared(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 1
    }

    /// Drops something on a thread of the script, where the stack is deep.
    pub(super) fn drop_there(&self, something: impl Send + 'static) {
        // Without a thread it is dropped here: the system is out of them, which nothing deep is the cause of.
        let job = |ticket, lead: Lead| {
            // It needs no turn.
            drop(ticket);
            lead.pass();
            drop(something);
        };
        self.pool.submit(job).ok();
    }

    /// Changes how many calls may run at once; `None` is the usual number.
    pub(super) fn limit(&self, running: Option<usize>) {
        // No machine has more threads for one script than calls may wait for them.
        let all = running.unwrap_or(RUNNING_MAX).min(WAITING_MAX);
        let share = all * BACKGROUND_SHARE.0 / BACKGROUND_SHARE.1;
        self.permits.resize(all);
        // A single thread is for everything.
        self.background.resize(share.max(1));
    }

    /// Runs a job. Dropping the future ends the job at its next operation or wait.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let permit = self.permit(&self.permits).await?;
        self.run_with(permit, job).await
    }

    /// Runs a job on the calling thread if it is short and nothing else of the script computes; returns it if not.
    pub(super) fn run_inline<T, Job: FnOnce() -> T>(
        &self,
        is_short: impl FnOnce() -> bool,
        job: Job,
    ) -> Result<Result<T, RunError>, Job> {
        let _running = Running::one(&self.running);
        let result = self.inline.run(&self.common, is_short, job)?;
        Ok(result.map_err(|panic| RunError::Panicked(panic_text(&*panic))))
    }

    /// Runs a job for which a job of this script waits: it has its own thread, but counts as a part of that job. So jobs that
    /// wait for others cannot keep them from a thread. There are as many more threads as such jobs are nested.
    pub(super) async fn run_within<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        self.run_with((), job).await
    }

    /// Runs the call of a daemon or a timer. `None` if it had to stop before there was a thread for it.
    pub(super) async fn run_background<T: Send + 'static>(
        &self,
        stopped: &Stopped,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, RunError> {
        let permits = async {
            // In this order: a daemon that waits for its share takes no thread away.
            let share = self.permit(&self.background).await?;
            Ok((share, self.permit(&self.permits).await?))
        };
        let permits = tokio::select! {
            biased; // it is called if that is possible at once
            permits = permits => permits?,
            () = stopped.wait() => return Ok(None),
        };
        self.run_with(permits, job).await.map(Some)
    }

    /// Runs a job that holds these permits.
    async fn run_with<T: Send + 'static>(
        &self,
        permits: impl Send + 'static,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let link = CancelOnDrop::default();
        // One wait at a time: a job asks for the next one only after the last.
        let (ask, mut waits) = mpsc::channel(1);
        let control =
            Control::new(Arc::clone(&self.common), Arc::clone(&link.0), Some(ask.clone()));
        let restarts = self.common.restarts();
        let running = Running::one(&self.running);
        let (finish, finished) = oneshot::channel();
        let outside = self.outside();
        let work = move |ticket, lead| {
            let _log = outside.as_ref().map(|(log, _)| tracing::dispatcher::set_default(log));
            let _time = outside.as_ref().map(|(_, runtime)| runtime.enter());
            let result =
                panic::catch_unwind(AssertUnwindSafe(|| control.scope((ticket, Some(lead)), job)));
            drop((permits, running));
            // Nobody may be waiting any more.
            drop(finish.send(result));
            // Only now the waits end, and with them the hold on the clock: the result is there already.
            drop(ask);
        };
        self.pool.submit(work).map_err(|error| RunError::NoThread(error.to_string()))?;
        loop {
            let (wait, rest) = tokio::select! {
                biased; // what has come is looked at before how long it took
                next = self.next_wait(waits) => next,
                limit = self.stuck(&link.0) => return Err(self.abandoned(limit)),
            };
            let Some(wait) = wait else { break };
            let rest = Unended { waits: Some(rest), placement: self.placement };
            let began = Instant::now();
            tokio::select! {
                biased; // what is done is done
                () = wait.until => {}
                // The call has to end: it sees that it waits for nothing.
                () = self.common.restarted(restarts) => {
                    waits = rest.take();
                    continue;
                }
            }
            // It waits for this; should it be gone, the next wait says so.
            wait.resume.send(began.elapsed()).ok();
            waits = rest.take();
        }
        match finished.await {
            Ok(result) => result.map_err(|panic| RunError::Panicked(panic_text(&*panic))),
            // Only a thread that could not be made leaves a job without an end.
            Err(_) => Err(RunError::NoThread("the system has no more threads".into())),
        }
    }

    /// Ends when the job is stuck, with the limit that it ignores. Never where operations are counted: the clock stands still.
    async fn stuck(&self, link: &Link) -> Duration {
        match self.common.budget {
            Budget::Operations(_) => future::pending().await,
            Budget::Time(limit) => loop {
                sleep(limit + GRACE).await;
                if link.abandon(limit + GRACE, &self.common.turns) {
                    return limit;
                }
            },
        }
    }

    /// Its thread keeps its permit until it ends, so there are never more threads than permits.
    fn abandoned(&self, limit: Duration) -> RunError {
        tracing::error!(
            target: "kopf.scripts",
            "A call of {} did not stop at its limit of {} s of CPU time: its thread is abandoned, and counts as one of the \
             script's threads until it ends. This is a bug in kopf: please report it with the script.",
            self.name, limit.as_secs_f64()
        );
        RunError::Stuck(limit)
    }

    /// Where the caller's runtime logs to, and its clock, for the thread of a job; in production there is one of each.
    fn outside(&self) -> Option<(Dispatch, Handle)> {
        match self.placement {
            Placement::Threads => None,
            Placement::CurrentRuntime => {
                Some((tracing::dispatcher::get_default(Dispatch::clone), Handle::current()))
            }
        }
    }

    /// The right to a thread.
    async fn permit(&self, of: &Permits) -> Result<OwnedSemaphorePermit, RunError> {
        if let Ok(permit) = Arc::clone(&of.free).try_acquire_owned() {
            return Ok(permit);
        }
        self.tell(of);
        let _place = QueueSlot::take(&self.waiting).ok_or(RunError::Busy)?;
        // The semaphore is never closed.
        Arc::clone(&of.free).acquire_owned().await.or(Err(RunError::Busy))
    }

    /// Tells that threads are short, once: what waits for one is seen nowhere else.
    fn tell(&self, short: &Permits) {
        if self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        let (all, name) = (short.all.load(Ordering::Relaxed), &self.name);
        let whose = if std::ptr::eq(short, std::ptr::from_ref(&self.background)) {
            format!("All {all} threads for daemons and timers of {name} are busy: further ones")
        } else {
            format!("All {all} threads of {name} are busy: further calls")
        };
        tracing::warn!(
            target: "kopf.scripts",
            "{whose} wait until one is free. A Rhai call occupies a thread even while it waits: write daemons for many objects \
             in Lua, or raise settings.execution.max_workers."
        );
    }

    /// What the job asks for next; `None` when it has ended. Time stands still meanwhile if that is the placement.
    async fn next_wait(
        &self,
        mut waits: mpsc::Receiver<Wait>,
    ) -> (Option<Wait>, mpsc::Receiver<Wait>) {
        match self.placement {
            Placement::Threads => {
                let wait = waits.recv().await;
                (wait, waits)
            }
            Placement::CurrentRuntime => {
                let hold = spawn_blocking(move || {
                    let wait = waits.blocking_recv();
                    (wait, waits)
                });
                // The task only receives, so it cannot panic; it is not cancelled while its handle is here.
                hold.await.unwrap_or_else(|_| (None, mpsc::channel(1).1))
            }
        }
    }
}

impl Permits {
    fn new(all: usize) -> Self {
        Permits { free: Arc::new(Semaphore::new(all)), all: AtomicUsize::new(all) }
    }

    /// Changes how many there are. Those in use stay so: call it while nothing runs.
    fn resize(&self, all: usize) {
        let before = self.all.swap(all, Ordering::Relaxed);
        self.free.add_permits(all.saturating_sub(before));
        let _forgotten = self.free.forget_permits(before.saturating_sub(all));
    }
}

/// The waits of a job, during one of them. If they are dropped before the job has ended, time stands still until it has: what it
/// holds, such as locks, is free then.
struct Unended {
    waits: Option<mpsc::Receiver<Wait>>,
    placement: Placement,
}

impl Unended {
    fn take(mut self) -> mpsc::Receiver<Wait> {
        self.waits.take().unwrap_or_else(|| mpsc::channel(1).1)
    }
}

impl Drop for Unended {
    fn drop(&mut self) {
        let Some(mut waits) = self.waits.take() else { return };
        if self.placement == Placement::CurrentRuntime
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn_blocking(move || while waits.blocking_recv().is_some() {}));
        }
    }
}

/// Tells the job that nobody waits for it any more.
#[derive(Default)]
struct CancelOnDrop(Arc<Link>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// One of the calls that have a thread.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn one(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(of))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in the bounded queue for threads.
struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = QueueSlot(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(place)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}
