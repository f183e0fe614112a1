//! From the runtime to the threads of a script and back: one job, its waits, its result.
//!
//! A job computes on a thread of its own and asks the runtime to sleep for it, so all waiting goes through tokio's time. Under
//! [`Placement::CurrentRuntime`] a parked blocking task holds the clock while a job computes, and only then: a paused clock
//! jumps exactly when every job waits.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    task::spawn_blocking,
};
use tracing::Dispatch;

use super::{
    control::{Budget, Control, Wait},
    pool::Pool,
    turn::Turns,
};
use crate::scripting::Placement;

/// The most calls of one script at once; each holds a thread, also while it waits.
const RUNNING_MAX: usize = 64;
/// The most calls of one script that wait for a thread; more are refused, and their handlers retried.
const WAITING_MAX: usize = 10_000;
/// The running time of one call.
const CPU_LIMIT: Duration = Duration::from_secs(1);
/// The same in operations, where time must not matter: about a second of an unoptimized build.
const OPERATIONS_LIMIT: u64 = 10_000_000;

/// Runs jobs of one script.
pub(super) struct Runner {
    pool: Pool,
    placement: Placement,
    budget: Budget,
    turns: Arc<Turns>,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Why a job gave no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    #[error("too many calls of this script are waiting for a thread")]
    Busy,
    #[error("no thread for this script: {0}")]
    NoThread(String),
    #[error("the host failed inside the call: {0}")]
    Panicked(String),
}

impl Runner {
    pub(super) fn new(placement: Placement) -> Self {
        let budget = match placement {
            Placement::Threads => Budget::Time(CPU_LIMIT),
            Placement::CurrentRuntime => Budget::Operations(OPERATIONS_LIMIT),
        };
        Runner::with_budget(placement, budget)
    }

    /// With another limit of each job's computing.
    pub(super) fn with_budget(placement: Placement, budget: Budget) -> Self {
        Runner {
            pool: Pool::new(),
            placement,
            budget,
            turns: Arc::default(),
            permits: Arc::new(Semaphore::new(RUNNING_MAX)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Runs a job. Dropping the future ends the job at its next operation or wait.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let permit = self.permit().await?;
        self.run_permitted(Some(permit), job).await
    }

    /// Runs a job for which a job of this script waits: it has its own thread, but counts as a part of that job. So jobs that
    /// wait for others cannot keep them from a thread. There are as many more threads as such jobs are nested.
    pub(super) async fn run_within<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        self.run_permitted(None, job).await
    }

    async fn run_permitted<T: Send + 'static>(
        &self,
        permit: Option<OwnedSemaphorePermit>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let cancelled = CancelOnDrop::default();
        // One wait at a time: a job asks for the next one only after the last.
        let (ask, mut waits) = mpsc::channel(1);
        let control = Control::new(
            self.budget,
            Arc::clone(&cancelled.0),
            ask.clone(),
            Arc::clone(&self.turns),
        );
        let (finish, finished) = oneshot::channel();
        let log = self.log();
        let work = move || {
            let _log = log.as_ref().map(tracing::dispatcher::set_default);
            let result = panic::catch_unwind(AssertUnwindSafe(|| control.scope(job)));
            drop(permit);
            // Nobody may be waiting any more.
            drop(finish.send(result));
            // Only now the waits end, and with them the hold on the clock: the result is there already.
            drop(ask);
        };
        self.pool.submit(Box::new(work)).map_err(|error| RunError::NoThread(error.to_string()))?;
        while let (Some(wait), rest) = self.next_wait(waits).await {
            wait.until.await;
            // It waits for this; should it be gone, the next wait says so.
            wait.resume.send(()).ok();
            waits = rest;
        }
        match finished.await {
            Ok(result) => result.map_err(|panic| RunError::Panicked(panic_text(&*panic))),
            Err(_) => Err(RunError::Panicked("its thread is gone".into())),
        }
    }

    /// Where the caller's runtime logs to, for the thread of a job; in production all threads log to the same place.
    fn log(&self) -> Option<Dispatch> {
        match self.placement {
            Placement::Threads => None,
            Placement::CurrentRuntime => Some(tracing::dispatcher::get_default(Dispatch::clone)),
        }
    }

    /// The right to a thread.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, RunError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Place::take(&self.waiting).ok_or(RunError::Busy)?;
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.or(Err(RunError::Busy))
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

/// Tells the job that nobody waits for it any more.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A place in the bounded queue for threads.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Place(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}
