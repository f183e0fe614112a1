//! The running call of a thread: its limits, its waiting, its end before time.
//!
//! Rhai reports progress without saying whose, so the control of a call lies in a thread-local while the call runs.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rhai::{Dynamic, EvalAltResult, Position};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    kept::{Hold, Kept},
    ledger::Ledger,
    link::Link,
    pool::Lead,
    stopwatch::Stopwatch,
    turn::{Ticket, Turns},
};
use crate::call::Invocation;
use crate::heap;
use crate::logic::handlers::outcome::Ended;
use crate::ports::BoxFuture;
use crate::scripting::{
    script::running_time::running_time,
    values::{memos::Memos, refused::Room},
};
use crate::settings::Sandbox;

/// How many operations of a script pass between two looks at its limits, while operations are short: some microseconds.
const LOOK_EVERY: u32 = 16;
/// If they took longer than this, the next operation is looked at too: one of them may work on a text of megabytes.
const LOOKS_APART: Duration = Duration::from_micros(500);

/// How long a call may compute while others of its script want to.
const SLICE: Duration = Duration::from_millis(5);

/// How often a call that computes for long shows that it still looks at its limits.
const SIGNS_APART: Duration = Duration::from_millis(100);

/// Operations that stand for a second of [`Budget::Operations`]: about what an unoptimized build does in one.
const OPERATIONS_PER_SECOND: u128 = 10_000_000;

/// How long a call may compute. Waiting does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// Running time, for production.
    Time(Duration),
    /// So many operations as stand for this time, for tests: the same on every machine.
    Operations(Duration),
}

/// What a call asks of the runtime while it runs.
pub(super) struct Wait {
    /// What to wait for.
    pub(super) until: BoxFuture<'static, ()>,
    /// Told how long it took; dropped if the call is given up.
    pub(super) resume: oneshot::Sender<Duration>,
}

/// See [`operation`]: expressions without a variable are short.
const OPERATIONS_OF_GRACE: u32 = 32;

/// Why a call was ended from outside. Scripts cannot catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abort {
    /// It computed for longer than this.
    Exhausted(Duration),
    /// Its script holds more than so many bytes.
    Full(usize),
    /// Its script fills its memory again and again with what cannot be freed.
    Leaking,
    /// Nobody waits for the result any more.
    Cancelled,
    /// A text is longer than this.
    TooLong(usize),
    /// A list or a map, as it is called, has more items than it may have.
    TooMany(&'static str),
}

/// What the calls of one script share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) budget: Budget,
    pub(super) turns: Arc<Turns>,
    pub(super) ledger: Ledger,
    /// Bytes of a patch as JSON.
    pub(super) result_size: usize,
    /// Bytes of a value that is passed to the host as JSON.
    pub(super) string_size: usize,
    pub(super) kept: Kept,
    /// How often the script was started afresh: the calls of before have to end then. And the same for those that wait.
    restarts: AtomicU64,
    fresh: watch::Sender<()>,
}

/// The control of one call.
#[derive(Debug)]
pub(super) struct Control {
    common: Arc<Common>,
    link: Arc<Link>,
    /// `None` on the operator's thread, where no call waits.
    waits: Option<mpsc::Sender<Wait>>,
    /// Restarts of the script when the call was made.
    restarts: u64,
    /// On the clock of the runtime, which tests pause and threads do not know.
    began: Instant,
    watch: Cell<Stopwatch>,
    /// What the thread had computed when the call began, and what waiting has paid back since.
    computed_before: Cell<Duration>,
    /// From which running time on the thread may have computed for too long: its own time is asked for only then, because a
    /// busy machine gives it less than that.
    suspect: Cell<Duration>,
    /// The running time at the begin of the present turn, and at the last look.
    turn_began: Cell<Duration>,
    looked: Cell<Duration>,
    /// The running time at the last sign of life.
    seen: Cell<Duration>,
    operations: Cell<u64>,
    /// What the thread held at the begin of the present turn.
    held: Cell<isize>,
    /// Why the call ends. Once it has to end, every further step is refused.
    ended: Cell<Option<Abort>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Control>> = const { RefCell::new(None) };
    /// Operations until the next look at the limits.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// What the thread may hold; more is looked at, at once.
    static CEILING: Cell<isize> = const { Cell::new(isize::MAX) };
    /// How many more operations the running call may begin after it had to end, to come to a place that its error can name.
    static GRACE: Cell<u32> = const { Cell::new(0) };
    /// The running call has to end.
    static ENDING: Cell<bool> = const { Cell::new(false) };
    /// What the present turn took for the host.
    static GIVEN: Cell<isize> = const { Cell::new(0) };
}

impl Budget {
    /// Returns the limit: the time, or the time that the operations stand for.
    fn limit(self) -> Duration {
        match self {
            Budget::Time(limit) | Budget::Operations(limit) => limit,
        }
    }
}

impl Common {
    /// Creates what the calls of a script with these limits share.
    pub(super) fn new(budget: Budget, turns: Arc<Turns>, ledger: Ledger, limits: &Sandbox) -> Self {
        Common {
            budget,
            turns,
            ledger,
            result_size: limits.result_size,
            string_size: limits.string_size,
            kept: Kept::default(),
            restarts: AtomicU64::new(0),
            fresh: watch::Sender::default(),
        }
    }

    /// Returns how often the script was started afresh.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Ends all calls that run now, at their next operation; those that wait at once.
    pub(super) fn restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.fresh.send_replace(());
    }

    /// Waits until the script is started afresh more often than that.
    pub(super) async fn restarted(&self, before: u64) {
        let mut fresh = self.fresh.subscribe();
        // Changes from now on are seen below.
        if self.restarts() == before {
            drop(fresh.changed().await);
        }
    }
}

impl Control {
    pub(super) fn new(
        common: Arc<Common>,
        link: Arc<Link>,
        waits: Option<mpsc::Sender<Wait>>,
    ) -> Self {
        let restarts = common.restarts();
        Control {
            common,
            link,
            waits,
            restarts,
            began: Instant::now(),
            watch: Cell::default(),
            computed_before: Cell::default(),
            suspect: Cell::default(),
            turn_began: Cell::default(),
            looked: Cell::default(),
            seen: Cell::default(),
            operations: Cell::new(0),
            held: Cell::new(0),
            ended: Cell::new(None),
        }
    }

    /// Runs something under this control, when it is its turn.
    pub(super) fn scope<T>(
        self,
        (ticket, lead): (Ticket, Option<Lead>),
        work: impl FnOnce() -> T,
    ) -> T {
        /// Ends the turn and takes the control away, also after a panic.
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                if let Some(control) = CURRENT.take() {
                    control.pause();
                }
            }
        }
        self.link.begin(ticket, lead);
        self.begin_turn();
        self.computed_before.set(running_time());
        self.suspect.set(self.common.budget.limit());
        GRACE.set(OPERATIONS_OF_GRACE);
        ENDING.set(false);
        CURRENT.set(Some(self));
        let _leave = Leave;
        work()
    }

    /// Lets others of the script compute. The call goes on later, on the same thread.
    fn step_aside(&self) {
        self.pause();
        self.link.pass_lead();
    }

    /// Ends the turn.
    fn pause(&self) {
        self.watch.set(self.watch.get().pause());
        // This also frees what the turn has noted of its views.
        self.common.kept.weigh(&self.common.ledger);
        let taken = heap::held().wrapping_sub(self.held.get());
        self.common.ledger.add(taken - GIVEN.take());
        CEILING.set(isize::MAX);
        self.link.pause(&self.common.turns);
    }

    /// Computes again, when it is its turn.
    fn resume(&self) {
        self.link.resume(&self.common.turns);
        self.begin_turn();
    }

    /// Everything that is counted by turns starts here.
    fn begin_turn(&self) {
        self.watch.set(self.watch.get().resume());
        self.turn_began.set(self.watch.get().before());
        self.held.set(heap::held());
        CEILING.set(heap::held().saturating_add(self.common.ledger.left()));
        LEFT.set(LOOK_EVERY);
    }

    fn holds(&self) -> isize {
        let taken = heap::held().wrapping_sub(self.held.get());
        self.common.ledger.held() + taken - GIVEN.get()
    }

    /// Ends the turn if it lasts long and others wait for theirs. Only where time matters: counted calls are not interrupted.
    fn share(&self, elapsed: Duration) {
        let lasts = elapsed.saturating_sub(self.turn_began.get()) >= SLICE && self.waits.is_some();
        if lasts && matches!(self.common.budget, Budget::Time(_)) && self.common.turns.is_wanted() {
            self.step_aside();
            self.resume();
        }
    }

    /// Restores one second of computing time for each second of waiting: a daemon lives long, and must not be aborted for the sum
    /// of its short turns.
    fn pay_back(&self, waited: Duration) {
        self.watch.set(self.watch.get().put_back(waited));
        self.looked.set(self.watch.get().before());
        self.computed_before.set((self.computed_before.get() + waited).min(running_time()));
        self.suspect.set(self.common.budget.limit());
        self.operations.set(self.operations.get().saturating_sub(operations_in(waited)));
    }

    /// Returns whether the thread itself has computed for this long; if not, notes when it may have.
    fn has_computed(&self, limit: Duration, elapsed: Duration) -> bool {
        /// Rhai itself sleeps when a closure meets a lock of its own; so long a wait counts as computing. A busy machine gives a
        /// thread more than this part of the time.
        const WALL_SHARE: u32 = 8;
        let computed = running_time().saturating_sub(self.computed_before.get());
        let left = limit.saturating_sub(computed.max(elapsed / WALL_SHARE));
        self.suspect.set(elapsed + left);
        left.is_zero()
    }

    /// Checks all limits, for a call that has used this much time.
    fn check(&self, elapsed: Duration) -> Option<Abort> {
        if let ended @ Some(_) = self.ended.get() {
            return ended;
        }
        let Common { budget, ledger, .. } = &*self.common;
        let exhausted = match budget {
            Budget::Time(limit) => {
                elapsed >= self.suspect.get() && self.has_computed(*limit, elapsed)
            }
            Budget::Operations(limit) => self.operations.get() >= operations_in(*limit),
        };
        let ended = if self.link.is_cancelled() {
            Abort::Cancelled
        } else if exhausted {
            Abort::Exhausted(budget.limit())
        } else if heap::held() > CEILING.get() || self.common.restarts() != self.restarts {
            Abort::Full(ledger.limit())
        } else {
            return None;
        };
        self.ended.set(Some(ended));
        self.ended.get()
    }

    /// Checks, after some operations, whether the call has to end, and schedules the next check.
    fn look(&self) -> Option<Abort> {
        let passed = LOOK_EVERY.saturating_sub(LEFT.get());
        self.operations.set(self.operations.get() + u64::from(passed));
        let elapsed = self.watch.get().elapsed();
        self.share(elapsed);
        let ended = self.check(elapsed);
        let slow = elapsed.saturating_sub(self.looked.get()) > LOOKS_APART;
        self.looked.set(elapsed);
        if elapsed.abs_diff(self.seen.get()) > SIGNS_APART {
            self.seen.set(elapsed);
            self.link.beat();
        }
        let at_once = ended.is_some() || (slow && matches!(self.common.budget, Budget::Time(_)));
        LEFT.set(if at_once { 0 } else { LOOK_EVERY });
        ended
    }
}

fn operations_in(time: Duration) -> u64 {
    u64::try_from(time.as_micros() * OPERATIONS_PER_SECOND / 1_000_000).unwrap_or(u64::MAX)
}

/// Counts one operation of the running call; returns why the call has to end, if it has to.
pub(super) fn progress() -> Option<Abort> {
    let left = LEFT.get();
    if left > 0 && heap::held() <= CEILING.get() {
        LEFT.set(left - 1);
        return None;
    }
    CURRENT.with_borrow(|current| current.as_ref().and_then(Control::look))
}

/// Counts one operation of the engine, and returns why the call ends there. Rhai replaces the place of such an end by that of the
/// outermost call. So the next variable that the script looks at ends the call instead ([`end_at_variable`]), unless none comes.
pub(super) fn operation() -> Option<Abort> {
    let abort = progress()?;
    ENDING.set(true);
    match GRACE.get().checked_sub(1) {
        Some(left) => GRACE.set(left),
        None => return Some(abort),
    }
    None
}

/// Returns the error of a call that has to end, at a variable: with the place of the variable, and of all calls around it.
pub(super) fn end_at_variable() -> Result<(), Box<EvalAltResult>> {
    if ENDING.get() { step() } else { Ok(()) }
}

/// Counts one step of a host function that works long. The error ends the call, even if the script catches it.
pub(super) fn step() -> Result<(), Box<EvalAltResult>> {
    progress().map_or(Ok(()), |abort| Err(abort.into_error()))
}

/// Whether the running call should have ended by now: asked by functions of the host that work long, and after those of the
/// language, some of which swallow the abort of a script function they call.
pub(super) fn overdue() -> Option<Abort> {
    CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        control.check(control.watch.get().elapsed())
    })
}

/// Returns when the running call got its thread.
pub(super) fn began() -> Option<Instant> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| it.began))
}

/// Returns whether the running call is on the operator's thread.
pub(super) fn is_inline() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|it| it.waits.is_none()))
}

/// Returns how long the present call has computed so far; a short time includes that of others on a busy machine.
pub(super) fn took() -> Duration {
    /// Asking for the running time takes some tenths of a microsecond.
    const SHORT: Duration = Duration::from_micros(20);
    CURRENT.with_borrow(|current| {
        let Some(control) = current else { return Duration::ZERO };
        let time = control.watch.get().elapsed();
        if time < SHORT {
            time
        } else {
            running_time().saturating_sub(control.computed_before.get())
        }
    })
}

/// Returns the bytes that the script of the running call holds.
pub(super) fn holds() -> isize {
    CURRENT.with_borrow(|current| current.as_ref().map_or(0, Control::holds))
}

/// Stops counting everything that the script holds now, and returns how many bytes that was.
pub(super) fn forgive() -> isize {
    CURRENT.with_borrow(|current| {
        let Some(control) = current else { return 0 };
        let holds = control.holds();
        control.common.ledger.add(-holds);
        CEILING.set(control.held.get().saturating_add(control.common.ledger.left()));
        holds
    })
}

/// The running call, which is this one, is about to end.
pub(super) fn leave(call: &Arc<Invocation>) {
    CURRENT
        .with_borrow(|current| current.as_ref().map(|it| given(|| it.common.ledger.ended(call))));
}

/// Counts what the script still keeps of calls that have ended.
pub(super) fn look_at_leftovers() {
    CURRENT.with_borrow(|current| {
        current.as_ref().map(|it| given(|| it.common.ledger.look_at_leftovers()))
    });
}

/// Makes something for the host: it will be freed there, and counts as the script's only until the end of its turn.
pub(super) fn given<T>(make: impl FnOnce() -> T) -> T {
    let (before, outer) = (heap::held(), GIVEN.get());
    let made = make();
    // What was given inside of this is part of it.
    GIVEN.set(outer + heap::held().wrapping_sub(before));
    made
}

/// The same for something that may fail: an error stays with the script.
pub(super) fn handed<T, E>(make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let outer = GIVEN.get();
    let made = given(make);
    if made.is_err() {
        GIVEN.set(outer);
    }
    made
}

/// Copies something that the host made, for the script: freeing the original does not count for the script.
pub(super) fn own<T: Clone>(original: T) -> T {
    let own = original.clone();
    given(|| drop(original));
    own
}

/// The most bytes of a value that the running call keeps in the host, and of one that it passes.
pub(super) fn rooms() -> (Room, Room) {
    /// Of calls that nobody controls.
    const DEFAULT: usize = 4 << 20;
    let sizes = CURRENT.with_borrow(|current| {
        current.as_ref().map(|it| (it.common.result_size, it.common.string_size))
    });
    let (result, text) = sizes.unwrap_or((DEFAULT, DEFAULT));
    (Room::Result(result), Room::Text(text))
}

/// Counts a tree of the host as the script's for as long as it is viewed.
pub(super) fn hold(tree: &Arc<Value>) -> Option<Arc<Hold>> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| Hold::of(&it.common, tree)))
}

/// Refuses what a function has returned for an index if it is too much.
///
/// # Errors
/// What the script is told.
pub(super) fn admit_to_index(call: &Invocation, result: &Ended) -> Result<(), String> {
    given(|| with_memos(|it| it.admit_to_index(call, result))).unwrap_or(Ok(()))
}

pub(super) fn with_memos<T>(ask: impl FnOnce(&Memos) -> T) -> Option<T> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| ask(&it.common.ledger.memos)))
}

/// Checks, before a function allocates this many bytes at once, whether the script may still have them.
pub(super) fn reserve(bytes: usize) -> Result<(), Box<EvalAltResult>> {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
    if heap::held().saturating_add(bytes) <= CEILING.get() {
        return Ok(());
    }
    CURRENT.with_borrow(|current| {
        let control = current.as_ref();
        match control {
            Some(control) => {
                let full = Abort::Full(control.common.ledger.limit());
                control.ended.set(control.ended.get().or(Some(full)));
                LEFT.set(0);
                Err(full.into_error())
            }
            None => Ok(()),
        }
    })
}

/// Lets the running call wait; blocks only its own thread. Afterwards, says how much of the wait was work of the call elsewhere.
fn wait(
    until: BoxFuture<'static, ()>,
    worked: impl FnOnce() -> Duration,
) -> Result<(), Box<EvalAltResult>> {
    let passed = CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        let waits = control.waits.as_ref()?;
        control.step_aside();
        // Between the turns nothing is counted: what is sent is freed by the other side.
        let (resume, resumed) = oneshot::channel();
        let asked = waits.blocking_send(Wait { until, resume }).ok();
        // A call that was given up has dropped the other end.
        let passed = asked.and_then(|()| resumed.blocking_recv().ok());
        control.pay_back(passed.unwrap_or_default().saturating_sub(worked()));
        control.resume();
        passed
    });
    passed.map(drop).ok_or_else(|| overdue().unwrap_or(Abort::Cancelled).into_error())
}

/// Waits until something is done, and returns its output.
pub(super) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<EvalAltResult>> {
    wait_for_work(work, || Duration::ZERO)
}

/// The same for work of the call on another thread, which restores no computing time: `worked` says how much it was.
pub(super) fn wait_for_work<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    worked: impl FnOnce() -> Duration,
) -> Result<T, Box<EvalAltResult>> {
    let (work, mut done) = given(|| {
        let (tell, done) = oneshot::channel();
        let work: BoxFuture<'static, ()> = Box::pin(async move { drop(tell.send(work.await)) });
        (work, done)
    });
    wait(work, worked)?;
    let result = given(move || done.try_recv().ok());
    result.ok_or_else(|| Abort::Cancelled.into_error())
}

impl Abort {
    /// Converts the reason into an error with a place and a trace. If the script catches it, the next operation ends the call.
    pub(super) fn into_error(self) -> Box<EvalAltResult> {
        ENDING.set(true);
        GRACE.set(0);
        LEFT.set(0);
        CURRENT.with_borrow(|current| {
            current.as_ref().map(|it| it.ended.set(it.ended.get().or(Some(self))))
        });
        EvalAltResult::ErrorRuntime(Dynamic::from(self), Position::NONE).into()
    }
}
