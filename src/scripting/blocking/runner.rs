//! Runs the jobs of a script on its threads, and returns their results to the runtime.
//!
//! A job computes on a separate thread and asks the runtime to wait for it, so all waiting uses tokio's time. Under
//! [`Placement::CurrentRuntime`] a blocking task is parked while a job computes, and only then. It keeps a paused clock from advancing, so
//! the clock advances exactly when every job waits.

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
    common::{Budget, Common},
    control::{BlockingWait, Control},
    inline::{Inline, InlineFunction},
    ledger::Ledger,
    link::CallLink,
    pool::{Lead, Pool},
    turn::Turns,
};
use crate::call::{Invocation, Stopped};
use crate::scripting::{Placement, Terms};

/// Maximum number of concurrent calls of one script, unless the settings define it; each occupies a thread, also while it waits.
const RUNNING_MAX: usize = 64;
/// The share of these threads that daemons and timers may use: their calls last long, and other handlers should always find a thread.
const BACKGROUND_SHARE: (usize, usize) = (3, 4);
/// Maximum number of calls of one script that wait for a thread; further ones are rejected, and their handlers retried.
const WAITING_MAX: usize = 10_000;
/// A call that exceeds its limit by this is stuck in a function that does not check the limit. No such function is known; this is a guard
/// against unknown ones.
const GRACE: Duration = Duration::from_secs(1);

/// Runs jobs of one script.
pub(in crate::scripting) struct JobRunner {
    pool: Pool,
    inline: Inline,
    placement: Placement,
    common: Arc<Common>,
    /// Threads for all calls; `background` limits how many of them daemons and timers may use.
    permits: Permits,
    background: Permits,
    waiting: AtomicUsize,
    /// Calls that have started, including inline ones.
    running: Arc<AtomicUsize>,
    /// The name of the script, for messages.
    name: String,
    /// Whether the shortage of threads has been logged.
    told: AtomicBool,
}

/// Permits for threads, and how many exist in total.
struct Permits {
    free: Arc<Semaphore>,
    all: AtomicUsize,
}

/// Why a job has no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::scripting) enum RunError {
    #[error("too many calls of this script are waiting for a free thread")]
    Busy,
    #[error("cannot start a thread for the script: {0}")]
    NoThread(String),
    #[error("internal error in this call; please report it: {0}")]
    Panicked(String),
    /// It exceeded this limit of computing time without stopping, and was abandoned.
    #[error("the call did not stop at its CPU limit")]
    Stuck(Duration),
}

impl JobRunner {
    /// Creates the runner of a script with this name, on these terms. `threads` names its threads.
    pub(in crate::scripting) fn new(threads: String, name: &str, terms: &Terms) -> Self {
        let budget = match terms.placement {
            Placement::Threads => Budget::Time(terms.cpu_limit),
            Placement::CurrentRuntime => Budget::Operations(terms.cpu_limit),
        };
        let usage = terms.metrics.usage_of(name, terms.limits.memory_limit);
        let ledger = Ledger::new(terms.limits.memory_limit, usage.clone());
        let turns = Arc::<Turns>::default();
        JobRunner {
            inline: Inline::new(usage.clone()),
            pool: Pool::new(threads, &terms.limits, Arc::clone(&turns), usage),
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

    /// Aborts all current calls: computing ones at their next operation, waiting ones at once.
    pub(in crate::scripting) fn end_others(&self) {
        self.common.restart();
    }

    /// Returns whether other calls run alongside the caller.
    pub(in crate::scripting) fn is_shared(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 1
    }

    /// Returns whether a call waits before it begins, because many patches of the script are not sent yet.
    pub(in crate::scripting) fn delays(&self, call: &Invocation) -> bool {
        call.waits_for(self.common.ledger.memos.patches())
    }

    /// Drops a value on a thread of the script, which has a deep stack.
    pub(in crate::scripting) fn drop_there(&self, something: impl Send + 'static) {
        // If no thread can be created, the value is dropped here: that is a shortage of the system, which deep values do not cause.
        let job = |ticket, lead: Lead| {
            // Dropping needs no turn.
            drop(ticket);
            lead.pass();
            drop(something);
        };
        self.pool.submit(job).ok();
    }

    /// Sets the maximum number of concurrent calls; `None` is the default.
    pub(in crate::scripting) fn limit(&self, running: Option<usize>) {
        // No machine runs more threads than this for one script.
        let all = running.unwrap_or(RUNNING_MAX).min(WAITING_MAX);
        let share = all * BACKGROUND_SHARE.0 / BACKGROUND_SHARE.1;
        self.permits.resize(all);
        // A single thread serves all calls.
        self.background.resize(share.max(1));
    }

    /// Runs a job on a thread of the script. Dropping the future aborts the job at its next operation or wait.
    pub(in crate::scripting) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let permit = self.permit(&self.permits).await?;
        self.run_with(permit, job).await
    }

    /// Runs a job on the calling thread, see [`Inline::run`].
    pub(in crate::scripting) fn run_inline<T>(
        &self,
        function: impl FnOnce() -> Option<InlineFunction>,
        job: impl FnOnce() -> T,
    ) -> Option<Result<T, RunError>> {
        let _running = RunningGuard::one(&self.running);
        let result = self.inline.run(&self.common, function, job)?;
        Some(result.map_err(|panic| RunError::Panicked(panic_text(&*panic))))
    }

    /// Runs a job that another job of this script waits for. It gets a separate thread but needs no permit, because it counts as part of
    /// the waiting job; so jobs that wait for others cannot starve them of threads. The number of additional threads is that of such nested
    /// jobs.
    pub(in crate::scripting) async fn run_within<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        self.run_with((), job).await
    }

    /// Runs the call of a daemon or a timer. Returns `None` if it had to stop before it got a thread.
    pub(in crate::scripting) async fn run_background<T: Send + 'static>(
        &self,
        stopped: &Stopped,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, RunError> {
        let permits = async {
            // In this order, so that a daemon that waits for a background permit occupies no thread.
            let share = self.permit(&self.background).await?;
            Ok((share, self.permit(&self.permits).await?))
        };
        let permits = tokio::select! {
            biased; // permits that are free at once win over the stop
            permits = permits => permits?,
            () = stopped.wait() => return Ok(None),
        };
        self.run_with(permits, job).await.map(Some)
    }

    /// Runs a job that holds these permits until it ends.
    async fn run_with<T: Send + 'static>(
        &self,
        permits: impl Send + 'static,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let link = CancelOnDrop::default();
        // Capacity 1: a job requests the next wait only after the last one has ended.
        let (ask, mut waits) = mpsc::channel(1);
        let control =
            Control::new(Arc::clone(&self.common), Arc::clone(&link.0), Some(ask.clone()));
        let restarts = self.common.restarts();
        let running = RunningGuard::one(&self.running);
        let (finish, finished) = oneshot::channel();
        let outside = self.outside();
        let work = move |ticket, lead| {
            let _log = outside.as_ref().map(|(log, _)| tracing::dispatcher::set_default(log));
            let _time = outside.as_ref().map(|(_, runtime)| runtime.enter());
            let result =
                panic::catch_unwind(AssertUnwindSafe(|| control.scope((ticket, Some(lead)), job)));
            drop((permits, running));
            // The receiver may have been dropped.
            drop(finish.send(result));
            // Closes the channel of waits, which releases a paused clock. Only now: the result must be available before.
            drop(ask);
        };
        self.pool.submit(work).map_err(|error| RunError::NoThread(error.to_string()))?;
        loop {
            let (wait, rest) = tokio::select! {
                biased; // a wait that has arrived proves that the job is not stuck
                next = self.next_wait(waits) => next,
                limit = self.stuck(&link.0) => return Err(self.abandoned(limit)),
            };
            let Some(wait) = wait else { break };
            let rest = Unended { waits: Some(rest), placement: self.placement };
            let began = Instant::now();
            tokio::select! {
                biased; // a finished wait counts, even if the script is restarted
                () = wait.until => {}
                // The call has to end: dropping `resume` wakes it with an error.
                () = self.common.restarted(restarts) => {
                    waits = rest.take();
                    continue;
                }
            }
            // The job waits for this. If it has ended, the next receive reports that.
            wait.resume.send(began.elapsed()).ok();
            waits = rest.take();
        }
        match finished.await {
            Ok(result) => result.map_err(|panic| RunError::Panicked(panic_text(&*panic))),
            // The job was dropped, because no thread could be created for it.
            Err(_) => Err(RunError::NoThread("the system has no more threads".into())),
        }
    }

    /// Waits until the job is stuck, abandons it, and returns the limit that it ignores. Never returns where operations are counted: the
    /// clock stands still while the job computes.
    async fn stuck(&self, link: &CallLink) -> Duration {
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

    /// Logs that a call was abandoned, and returns its error. Its thread keeps the permit until it ends, so that abandoned threads count,
    /// too.
    fn abandoned(&self, limit: Duration) -> RunError {
        tracing::error!(
            target: "kopf.scripts",
            "A call of {} did not stop at its limit of {} s of CPU time: its thread is abandoned, and counts as one of the \
             script's threads until it ends. This is a bug in kopf: please report it with the script.",
            self.name, limit.as_secs_f64()
        );
        RunError::Stuck(limit)
    }

    /// Returns the log and the runtime of the caller, for the thread of a job; `None` in production, where there is only one of each.
    fn outside(&self) -> Option<(Dispatch, Handle)> {
        match self.placement {
            Placement::Threads => None,
            Placement::CurrentRuntime => {
                Some((tracing::dispatcher::get_default(Dispatch::clone), Handle::current()))
            }
        }
    }

    /// Acquires a permit for a thread, or waits for it. Fails if too many calls wait already.
    async fn permit(&self, of: &Permits) -> Result<OwnedSemaphorePermit, RunError> {
        if let Ok(permit) = Arc::clone(&of.free).try_acquire_owned() {
            return Ok(permit);
        }
        self.tell(of);
        let _place = QueueSlot::take(&self.waiting).ok_or(RunError::Busy)?;
        // The semaphore is never closed.
        Arc::clone(&of.free).acquire_owned().await.or(Err(RunError::Busy))
    }

    /// Logs once that all threads are in use: calls that wait for one are visible nowhere else.
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

    /// Returns the next wait that the job requests; `None` when it has ended. Under [`Placement::CurrentRuntime`], a paused clock stands
    /// still meanwhile.
    async fn next_wait(
        &self,
        mut waits: mpsc::Receiver<BlockingWait>,
    ) -> (Option<BlockingWait>, mpsc::Receiver<BlockingWait>) {
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
                // The task only receives, so it cannot panic; it is not aborted while its handle exists.
                hold.await.unwrap_or_else(|_| (None, mpsc::channel(1).1))
            }
        }
    }
}

impl Permits {
    fn new(all: usize) -> Self {
        Permits { free: Arc::new(Semaphore::new(all)), all: AtomicUsize::new(all) }
    }

    /// Sets the number of permits. Permits that are in use are not withdrawn, so call this while nothing runs.
    fn resize(&self, all: usize) {
        let before = self.all.swap(all, Ordering::Relaxed);
        self.free.add_permits(all.saturating_sub(before));
        let _forgotten = self.free.forget_permits(before.saturating_sub(all));
    }
}

/// The receiver of a job's waits, during one of them. If it is dropped before the job has ended, a paused clock stands still until the job
/// has ended and released what it holds, such as locks.
struct Unended {
    waits: Option<mpsc::Receiver<BlockingWait>>,
    placement: Placement,
}

impl Unended {
    fn take(mut self) -> mpsc::Receiver<BlockingWait> {
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

/// Cancels the job when the caller's future is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<CallLink>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Counts a call as running until it is dropped.
struct RunningGuard(Arc<AtomicUsize>);

impl RunningGuard {
    fn one(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        RunningGuard(Arc::clone(of))
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A slot in the bounded queue of calls that wait for a thread.
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
