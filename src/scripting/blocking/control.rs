//! The control of the running call of a thread: its limits, its waits, its abort.
//!
//! An engine's progress callback does not identify the call, so the control is in a thread-local while the call runs.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    sync::Arc,
    time::Duration,
};

use kopf_json::shared::SharedJson;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    common::{Budget, Common, operations_in},
    kept::KeptTree,
    link::CallLink,
    pool::Lead,
    stopwatch::Stopwatch,
    turn::Ticket,
};
use crate::call::Invocation;
use crate::heap;
use crate::logic::handlers::outcome::CallEnd;
use crate::ports::BoxFuture;
use crate::scripting::{inline::LONG, script::running_time::running_time, values::memos::Memos};

/// Operations of a script between two checks of its limits, while operations are short: some microseconds.
const LOOK_EVERY: u32 = 16;
/// If they took longer than this, the limits are checked at the next operation, too: one operation may process megabytes of text.
const LOOKS_APART: Duration = Duration::from_micros(500);

/// How long a call may compute while other calls of its script wait for their turn.
const SLICE: Duration = Duration::from_millis(5);

/// The interval of the heartbeats with which a call that computes for long proves that it still checks its limits.
const SIGNS_APART: Duration = Duration::from_millis(100);

/// A wait that a running call requests from the runtime.
pub(super) struct BlockingWait {
    /// What to wait for.
    pub(super) until: BoxFuture<'static, ()>,
    /// Receives how long the wait took; dropped if the call is aborted.
    pub(super) resume: oneshot::Sender<Duration>,
}

/// How many operations a call may begin after it had to end, see [`operation`]: expressions without a variable are shorter.
const OPERATIONS_OF_GRACE: u32 = 32;

/// How many operations an inline call that can be repeated may begin, and how many bytes it may hold: touching all of them at each
/// operation between two checks takes some milliseconds.
const INLINE_OPERATIONS_MAX: u64 = 1000;
const INLINE_BYTES_MAX: isize = 256 << 10;

/// Why a call is aborted. Scripts cannot catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scripting) enum Abort {
    /// It computed for longer than this.
    Exhausted(Duration),
    /// Its script holds more than this many bytes.
    Full(usize),
    /// Its script has repeatedly filled its memory with values that cannot be freed.
    Leaking,
    /// The result is no longer needed.
    Cancelled,
    /// It takes long, and is repeated on a thread of the script.
    Repeated,
    /// A string is longer than this many bytes.
    TooLong(usize),
    /// A collection, such as "a list", has too many items.
    TooMany(&'static str),
}

/// The control of one call.
#[derive(Debug)]
pub(super) struct Control {
    common: Arc<Common>,
    link: Arc<CallLink>,
    /// `None` for inline calls, which never wait.
    waits: Option<mpsc::Sender<BlockingWait>>,
    /// Restarts of the script when the call was created.
    restarts: u64,
    /// When the call was created, on the runtime's clock: tests may pause it, and threads of scripts do not read it.
    began: Instant,
    watch: Cell<Stopwatch>,
    /// CPU time of the thread when the call began, plus the time that waiting has restored since.
    computed_before: Cell<Duration>,
    /// Running time from which on the thread may have exceeded the limit. Its CPU time, which is less than the running time on a busy
    /// machine, is read only then.
    suspect: Cell<Duration>,
    /// The running time at the beginning of the current turn, and at the last check.
    turn_began: Cell<Duration>,
    looked: Cell<Duration>,
    /// The running time at the last heartbeat.
    seen: Cell<Duration>,
    operations: Cell<u64>,
    /// Bytes that the thread held at the beginning of the current turn.
    held: Cell<isize>,
    /// Whether the call is inline and can be repeated on a thread: then it ends when it takes long.
    is_repeatable: Cell<bool>,
    /// Why the call has to end; from then on, every step is refused.
    ended: Cell<Option<Abort>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Control>> = const { RefCell::new(None) };
    /// Operations until the next check of the limits.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// Bytes that the thread may hold; if it holds more, the next operation checks the limits.
    static CEILING: Cell<isize> = const { Cell::new(isize::MAX) };
    /// How many more operations the running call may begin after it had to end, to reach a place that its error can name.
    static GRACE: Cell<u32> = const { Cell::new(0) };
    /// Whether the running call has to end.
    static ENDING: Cell<bool> = const { Cell::new(false) };
    /// Bytes that the current turn has allocated for the host.
    static GIVEN: Cell<isize> = const { Cell::new(0) };
}

impl Control {
    pub(super) fn new(
        common: Arc<Common>,
        link: Arc<CallLink>,
        waits: Option<mpsc::Sender<BlockingWait>>,
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
            is_repeatable: Cell::new(false),
            ended: Cell::new(None),
        }
    }

    /// Makes the call end when it takes long, because it will be repeated on a thread.
    pub(super) fn repeatable(self) -> Self {
        self.is_repeatable.set(true);
        self
    }

    /// Waits for the turn, and runs the work under this control.
    pub(super) fn scope<T>(
        self,
        (ticket, lead): (Ticket, Option<Lead>),
        work: impl FnOnce() -> T,
    ) -> T {
        /// Ends the turn and removes the control, also after a panic.
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

    /// Ends the turn and passes on the leadership. The call continues later, on the same thread.
    fn step_aside(&self) {
        self.pause();
        self.link.pass_lead();
    }

    /// Ends the turn, and adds the memory that it took to that of the script.
    fn pause(&self) {
        self.watch.set(self.watch.get().pause());
        // Before the turn's memory is summed up: this frees its list of new views.
        self.common.kept.weigh(&self.common.ledger);
        let taken = heap::held().wrapping_sub(self.held.get());
        self.common.ledger.add(taken - GIVEN.take());
        CEILING.set(isize::MAX);
        self.link.pause(&self.common.turns);
    }

    /// Waits for the next turn and begins it.
    fn resume(&self) {
        self.link.resume(&self.common.turns);
        self.begin_turn();
    }

    /// Starts everything that is counted per turn.
    fn begin_turn(&self) {
        self.watch.set(self.watch.get().resume());
        self.turn_began.set(self.watch.get().before());
        self.held.set(heap::held());
        self.raise_ceiling();
        LEFT.set(LOOK_EVERY);
    }

    /// Allows the turn to hold what is left of the memory limit.
    fn raise_ceiling(&self) {
        let left = self.common.ledger.left();
        let left = if self.is_repeatable.get() { left.min(INLINE_BYTES_MAX) } else { left };
        CEILING.set(self.held.get().saturating_add(left));
    }

    /// Returns why the call has to end if it needs more memory.
    fn full(&self) -> Abort {
        if self.is_repeatable.get() {
            Abort::Repeated
        } else {
            Abort::Full(self.common.ledger.limit())
        }
    }

    /// Returns whether an inline call takes so long that it must be repeated on a thread.
    fn is_long(&self, elapsed: Duration) -> bool {
        self.operations.get() >= INLINE_OPERATIONS_MAX
            || (matches!(self.common.budget, Budget::Time(_)) && elapsed > LONG)
    }

    fn holds(&self) -> isize {
        let taken = heap::held().wrapping_sub(self.held.get());
        self.common.ledger.held() + taken - GIVEN.get()
    }

    /// Interrupts the turn if it lasts long and other calls wait for theirs. Only where time is limited: calls are not interrupted while
    /// operations are counted.
    fn share(&self, elapsed: Duration) {
        let lasts = elapsed.saturating_sub(self.turn_began.get()) >= SLICE && self.waits.is_some();
        if lasts && matches!(self.common.budget, Budget::Time(_)) && self.common.turns.is_wanted() {
            self.step_aside();
            self.resume();
        }
    }

    /// Restores one second of computing time for each second of waiting: a daemon runs for long, and must not be aborted for the sum of its
    /// short turns.
    fn pay_back(&self, waited: Duration) {
        self.watch.set(self.watch.get().put_back(waited));
        self.looked.set(self.watch.get().before());
        self.computed_before.set((self.computed_before.get() + waited).min(running_time()));
        self.suspect.set(self.common.budget.limit());
        self.operations.set(self.operations.get().saturating_sub(operations_in(waited)));
    }

    /// Returns whether the thread has computed for this long, in CPU time; if not, sets when to check again.
    fn has_computed(&self, limit: Duration, elapsed: Duration) -> bool {
        /// This part of the running time counts at least: Rhai sleeps when a closure meets a lock of its own, which takes no CPU time. Even
        /// a busy machine gives a thread a larger share.
        const WALL_SHARE: u32 = 8;
        let computed = running_time().saturating_sub(self.computed_before.get());
        let left = limit.saturating_sub(computed.max(elapsed / WALL_SHARE));
        self.suspect.set(elapsed + left);
        left.is_zero()
    }

    /// Checks all limits of a call that has run for `elapsed`; returns why it has to end, if it has to.
    fn check(&self, elapsed: Duration) -> Option<Abort> {
        if let ended @ Some(_) = self.ended.get() {
            return ended;
        }
        let budget = &self.common.budget;
        let exhausted = match budget {
            Budget::Time(limit) => {
                elapsed >= self.suspect.get() && self.has_computed(*limit, elapsed)
            }
            Budget::Operations(limit) => self.operations.get() >= operations_in(*limit),
        };
        let ended = if self.link.is_cancelled() {
            Abort::Cancelled
        } else if self.is_repeatable.get() && self.is_long(elapsed) {
            Abort::Repeated
        } else if exhausted {
            Abort::Exhausted(budget.limit())
        } else if heap::held() > CEILING.get() || self.common.restarts() != self.restarts {
            self.full()
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

/// Counts one operation of the running call; returns why the call has to end, if it has to.
pub(in crate::scripting) fn progress() -> Option<Abort> {
    let left = LEFT.get();
    if left > 0 && heap::held() <= CEILING.get() {
        LEFT.set(left - 1);
        return None;
    }
    CURRENT.with_borrow(|current| current.as_ref().and_then(Control::look))
}

/// Counts one operation of the engine; returns why the call ends here, if it does. Rhai replaces the position of such an end by that of the
/// outermost call. So the next variable that the script reads ends the call instead ([`end_at_variable`]), unless there is none.
pub(in crate::scripting) fn operation() -> Option<Abort> {
    let abort = progress()?;
    ENDING.set(true);
    match GRACE.get().checked_sub(1) {
        Some(left) => GRACE.set(left),
        None => return Some(abort),
    }
    None
}

/// Fails if the running call has to end. At a variable, the error has the position of the variable and of all calls around it.
pub(in crate::scripting) fn end_at_variable() -> Result<(), Abort> {
    if ENDING.get() { step() } else { Ok(()) }
}

/// Counts one step of a host function that runs for long. The error ends the call, even if the script catches it.
pub(in crate::scripting) fn step() -> Result<(), Abort> {
    progress().map_or(Ok(()), |abort| Err(abort.raised()))
}

/// Returns why the running call should have ended by now, if so: for host functions that run for long, and after functions of Rhai, some of
/// which swallow the abort of a script function that they call.
pub(in crate::scripting) fn overdue() -> Option<Abort> {
    CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        control.check(control.watch.get().elapsed())
    })
}

/// Returns when the running call was created, on the runtime's clock.
pub(in crate::scripting) fn began() -> Option<Instant> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| it.began))
}

/// Returns whether the running call is inline, on the operator's thread.
pub(in crate::scripting) fn is_inline() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|it| it.waits.is_none()))
}

/// Keeps the result of the running call: from now on, it is not repeated.
pub(in crate::scripting) fn keep_result() {
    CURRENT.with_borrow(|current| {
        if let Some(control) = current.as_ref().filter(|it| it.is_repeatable.replace(false)) {
            control.raise_ceiling();
        }
    });
}

/// Returns whether the running call must be repeated on a thread.
pub(in crate::scripting) fn must_repeat() -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|it| it.ended.get() == Some(Abort::Repeated))
    })
}

/// Returns how long the running call has computed so far. A short time includes that of others on a busy machine.
pub(in crate::scripting) fn took() -> Duration {
    /// Below this, the CPU time is not read: that takes some tenths of a microsecond.
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
pub(in crate::scripting) fn holds() -> isize {
    CURRENT.with_borrow(|current| current.as_ref().map_or(0, Control::holds))
}

/// Stops counting everything that the script holds now, and returns how many bytes that was.
pub(in crate::scripting) fn forgive() -> isize {
    CURRENT.with_borrow(|current| {
        let Some(control) = current else { return 0 };
        let holds = control.holds();
        control.common.ledger.add(-holds);
        control.raise_ceiling();
        holds
    })
}

/// Records that the running call, which is this one, is about to end.
pub(in crate::scripting) fn leave(call: &Arc<Invocation>) {
    CURRENT
        .with_borrow(|current| current.as_ref().map(|it| given(|| it.common.ledger.ended(call))));
}

/// Checks how much the script still retains of calls that have ended, and counts it.
pub(in crate::scripting) fn look_at_leftovers() {
    CURRENT.with_borrow(|current| {
        current.as_ref().map(|it| given(|| it.common.ledger.look_at_leftovers()))
    });
}

/// Creates something for the host, which will free it: it counts as the script's memory only until the end of the turn.
pub(in crate::scripting) fn given<T>(make: impl FnOnce() -> T) -> T {
    let (before, outer) = (heap::held(), GIVEN.get());
    let made = make();
    // The difference includes that of nested calls.
    GIVEN.set(outer + heap::held().wrapping_sub(before));
    made
}

/// Creates something for the host, as [`given`] does, unless it fails: an error remains the script's memory.
pub(in crate::scripting) fn handed<T, E>(make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let outer = GIVEN.get();
    let made = given(make);
    if made.is_err() {
        GIVEN.set(outer);
    }
    made
}

/// Copies something that the host created, for the script: freeing the original does not reduce the script's memory.
pub(in crate::scripting) fn own<T: Clone>(original: T) -> T {
    let own = original.clone();
    given(|| drop(original));
    own
}

/// Returns the maximum bytes of a value that the running call stores in the host, and of one that it passes.
pub(in crate::scripting) fn sizes() -> (usize, usize) {
    /// Bytes, if there is no running call.
    const DEFAULT: usize = 4 << 20;
    let sizes = CURRENT.with_borrow(|current| {
        current.as_ref().map(|it| (it.common.result_size, it.common.string_size))
    });
    sizes.unwrap_or((DEFAULT, DEFAULT))
}

/// Counts a tree of the host as the script's memory for as long as it is viewed; `None` if there is no running call.
pub(in crate::scripting) fn hold(json: &SharedJson) -> Option<Arc<KeptTree>> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| KeptTree::of(&it.common, json)))
}

/// Checks the size of what a function has returned, and counts it.
///
/// # Errors
/// The message for the script, if it is too large.
pub(in crate::scripting) fn admit_result(
    call: &Invocation,
    result: &CallEnd,
) -> Result<(), String> {
    given(|| with_memos(|it| it.admit_result(call, result))).unwrap_or(Ok(()))
}

/// Waits until patches of the script have been sent, if the call must not begin before.
///
/// # Errors
/// If the call has to end.
pub(in crate::scripting) fn wait_for_patches(call: &Invocation) -> Result<(), Abort> {
    let budget = || with_memos(|it| Arc::clone(it.patches())).filter(|it| call.waits_for(it));
    match budget().filter(|_| !is_inline()) {
        Some(budget) => wait_for(budget.wait()),
        None => Ok(()),
    }
}

pub(in crate::scripting) fn with_memos<T>(ask: impl FnOnce(&Memos) -> T) -> Option<T> {
    CURRENT.with_borrow(|current| current.as_ref().map(|it| ask(&it.common.ledger.memos)))
}

/// Checks, before a function allocates this many bytes at once, whether the script may hold them. The error ends the call.
pub(in crate::scripting) fn reserve(bytes: usize) -> Result<(), Abort> {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
    if heap::held().saturating_add(bytes) <= CEILING.get() {
        return Ok(());
    }
    CURRENT.with_borrow(|current| {
        let control = current.as_ref();
        match control {
            Some(control) => {
                let full = control.full();
                control.ended.set(control.ended.get().or(Some(full)));
                LEFT.set(0);
                Err(full.raised())
            }
            None => Ok(()),
        }
    })
}

/// Blocks the thread of the running call until the future is done. `worked` returns how much of that was work of the call elsewhere, which
/// restores no computing time. Fails if the call has to end.
fn wait(until: BoxFuture<'static, ()>, worked: impl FnOnce() -> Duration) -> Result<(), Abort> {
    let passed = CURRENT.with_borrow(|current| {
        let control = current.as_ref()?;
        let waits = control.waits.as_ref()?;
        control.step_aside();
        // Between turns, memory is not counted: the receiver frees what is sent.
        let (resume, resumed) = oneshot::channel();
        let asked = waits.blocking_send(BlockingWait { until, resume }).ok();
        // The runtime drops its end if the call is aborted.
        let passed = asked.and_then(|()| resumed.blocking_recv().ok());
        control.pay_back(passed.unwrap_or_default().saturating_sub(worked()));
        control.resume();
        passed
    });
    passed.map(drop).ok_or_else(|| overdue().unwrap_or(Abort::Cancelled).raised())
}

/// Waits for a future and returns its output. Fails if the call has to end.
pub(in crate::scripting) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Abort> {
    wait_for_work(work, || Duration::ZERO)
}

/// Waits for work of the call on another thread, which restores no computing time: `worked` returns its duration.
pub(in crate::scripting) fn wait_for_work<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    worked: impl FnOnce() -> Duration,
) -> Result<T, Abort> {
    let (work, mut done) = given(|| {
        let (tell, done) = oneshot::channel();
        let work: BoxFuture<'static, ()> = Box::pin(async move { drop(tell.send(work.await)) });
        (work, done)
    });
    wait(work, worked)?;
    let result = given(move || done.try_recv().ok());
    result.ok_or_else(|| Abort::Cancelled.raised())
}

impl Abort {
    /// Returns the abort as an error of the running call. If the script catches it, the next operation ends the call.
    pub(in crate::scripting) fn raised(self) -> Self {
        ENDING.set(true);
        GRACE.set(0);
        LEFT.set(0);
        CURRENT.with_borrow(|current| {
            current.as_ref().map(|it| it.ended.set(it.ended.get().or(Some(self))))
        });
        self
    }
}
