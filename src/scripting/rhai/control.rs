//! The running call of a thread: its limits, its waiting, its end before time.
//!
//! Rhai reports progress without saying whose, so the control of a call lies in a thread-local while the call runs.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rhai::{Dynamic, EvalAltResult, Position};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::turn::Turns;
use crate::ports::{BoxFuture, Stopped};
use crate::scripting::stopped;

/// How often the limits are looked at, in operations: some microseconds of running time.
const CHECK_EVERY: u64 = 256;

/// How long a call may compute while others of its script want to.
const SLICE: Duration = Duration::from_millis(5);

/// What the operations of [`Budget::Operations`] stand for.
const A_SECOND: Duration = Duration::from_secs(1);

/// How long a call may compute. Waiting does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// Running time, for production.
    Time(Duration),
    /// Operations, for tests: the same on every machine.
    Operations(u64),
}

/// What a call asks of the runtime while it runs.
pub(super) struct Wait {
    /// What to wait for.
    pub(super) until: Until,
    /// Told how long it took; dropped if the call is given up.
    pub(super) resume: oneshot::Sender<Duration>,
}

/// What a call waits for.
pub(super) enum Until {
    /// So much time has passed.
    Passed(Duration),
    /// The daemon must stop, or so much time has passed.
    Stopped(Stopped, Option<Duration>),
    /// Something is done, which the runtime does.
    Done(BoxFuture<'static, ()>),
}

/// Why a call was ended from outside. Scripts cannot catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abort {
    /// The budget is used up.
    Exhausted(Budget),
    /// Nobody waits for the result any more.
    Cancelled,
}

/// The control of one call.
#[derive(Debug)]
pub(super) struct Control {
    budget: Budget,
    cancelled: Arc<AtomicBool>,
    waits: mpsc::Sender<Wait>,
    turns: Arc<Turns>,
    watch: Cell<Stopwatch>,
    /// The running time at the begin of the present turn.
    turn_began: Cell<Duration>,
    operations: Cell<u64>,
}

thread_local! {
    static CURRENT: RefCell<Option<Control>> = const { RefCell::new(None) };
}

impl Control {
    pub(super) fn new(
        budget: Budget,
        cancelled: Arc<AtomicBool>,
        waits: mpsc::Sender<Wait>,
        turns: Arc<Turns>,
    ) -> Self {
        Control {
            budget,
            cancelled,
            waits,
            turns,
            watch: Cell::default(),
            turn_began: Cell::default(),
            operations: Cell::new(0),
        }
    }

    /// Runs something under this control, when it is its turn.
    pub(super) fn scope<T>(self, work: impl FnOnce() -> T) -> T {
        /// Ends the turn and takes the control away, also after a panic.
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                if let Some(control) = CURRENT.take() {
                    control.pause();
                }
            }
        }
        self.resume();
        CURRENT.set(Some(self));
        let _leave = Leave;
        work()
    }

    /// Lets others of the script compute.
    fn pause(&self) {
        self.watch.set(self.watch.get().pause());
        self.turns.pass();
    }

    /// Computes again, when it is its turn.
    fn resume(&self) {
        self.turns.take();
        self.watch.set(self.watch.get().resume());
        self.turn_began.set(self.watch.get().before);
    }

    /// Ends the turn if it lasts long and others wait for theirs. Only where time matters: counted calls are not interrupted.
    fn share(&self) {
        let lasts = || self.watch.get().elapsed().saturating_sub(self.turn_began.get()) >= SLICE;
        if matches!(self.budget, Budget::Time(_)) && self.turns.is_wanted() && lasts() {
            self.pause();
            self.resume();
        }
    }

    /// Waiting pays back computing, one for one: a daemon lives long, and should not be aborted for the sum of its short turns.
    fn pay_back(&self, waited: Duration) {
        let watch = self.watch.get();
        self.watch.set(Stopwatch { before: watch.before.saturating_sub(waited), ..watch });
        if let Budget::Operations(limit) = self.budget {
            let paid = waited.as_millis().saturating_mul(limit.into()) / A_SECOND.as_millis();
            let paid = u64::try_from(paid).unwrap_or(u64::MAX);
            self.operations.set(self.operations.get().saturating_sub(paid));
        }
    }

    fn check(&self) -> Option<Abort> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Some(Abort::Cancelled);
        }
        let exhausted = match self.budget {
            Budget::Time(limit) => self.watch.get().elapsed() >= limit,
            Budget::Operations(limit) => self.operations.get() >= limit,
        };
        exhausted.then_some(Abort::Exhausted(self.budget))
    }
}

/// Counts one operation of the running call; says whether the call has to end.
pub(super) fn progress() -> Option<Abort> {
    CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        let operations = control.operations.get() + 1;
        control.operations.set(operations);
        if !operations.is_multiple_of(CHECK_EVERY) {
            return None;
        }
        control.share();
        control.check()
    })
}

/// Whether the running call should have ended by now. Some native functions swallow the abort of a script function they call.
pub(super) fn overdue() -> Option<Abort> {
    CURRENT.with_borrow(|current| current.as_ref().and_then(Control::check))
}

/// Lets time pass for the running call; blocks only its own thread.
pub(super) fn wait(until: Until) -> Result<(), Box<EvalAltResult>> {
    let (resume, resumed) = oneshot::channel();
    let asked = CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        control.pause();
        control.waits.blocking_send(Wait { until, resume }).ok()
    });
    // A call that was given up has dropped the other end.
    let passed = asked.and_then(|()| resumed.blocking_recv().ok());
    CURRENT.with_borrow(|current| {
        if let Some(control) = current {
            control.pay_back(passed.unwrap_or_default());
            control.resume();
        }
    });
    passed.map(drop).ok_or_else(|| Abort::Cancelled.into_error())
}

/// Waits until something is done, and gives what came of it.
pub(super) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<EvalAltResult>> {
    let (give, mut given) = oneshot::channel();
    wait(Until::Done(Box::pin(async move { drop(give.send(work.await)) })))?;
    given.try_recv().ok().ok_or_else(|| Abort::Cancelled.into_error())
}

impl Until {
    /// Waits on the runtime.
    pub(super) async fn wait(self) {
        match self {
            Until::Passed(duration) => time::sleep(duration.min(stopped::SLEEP_MAX)).await,
            Until::Stopped(flag, timeout) => drop(stopped::wait(&flag, timeout).await),
            Until::Done(work) => work.await,
        }
    }
}

impl Abort {
    /// As an error that passes through `try … catch`.
    pub(super) fn into_error(self) -> Box<EvalAltResult> {
        EvalAltResult::ErrorTerminated(Dynamic::from(self), Position::NONE).into()
    }
}

/// Running time without the pauses. On the real clock, because a paused one stands still while a script computes.
#[derive(Clone, Copy, Debug, Default)]
struct Stopwatch {
    before: Duration,
    since: Option<RealInstant>,
}

#[expect(clippy::disallowed_types, reason = "measures computing, which no paused clock sees")]
type RealInstant = std::time::Instant;

impl Stopwatch {
    fn elapsed(self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |it| it.elapsed())
    }

    fn pause(self) -> Self {
        Stopwatch { before: self.elapsed(), since: None }
    }

    fn resume(self) -> Self {
        Stopwatch { since: Some(RealInstant::now()), ..self }
    }
}
