//! Stops calls that compute too long, at no cost for those that do not.
//!
//! Luau asks an interrupt function at every loop iteration and call, if one is installed; a permanent one doubles the time of
//! hot loops. So none is installed while calls are short: a thread beside the VM watches how long the present slice (one poll
//! of one call) takes and installs the interrupt when it takes too long. The interrupt lets neighbours run by yielding, and
//! aborts a call that has used up its budget. Short slices cost no look at a clock: now and then the thread finds one running,
//! and that charges the call with the time between two looks, which is right on the average.
//!
//! Natives that do not come back are beyond the reach of an interrupt. The thread notices, and says that the VM is stuck:
//! whoever runs it can only leave it alone and make another.
#![expect(unsafe_code, reason = "the place of Luau's interrupt is a C struct")]

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use mlua::{Lua, Thread, VmState, ffi};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    gauge::{self, Noticed},
    raised,
    world::{Limits, World},
};
use crate::scripting::{
    functions::Pace,
    script::running_time::running_time,
    values::{account::Deadline, limits},
};
use crate::settings::Sandbox;

/// How long a call may compute before its neighbours get a turn.
const SLICE: Duration = Duration::from_millis(10);
/// How often the thread looks; the error of a slice's length.
const TICK: Duration = Duration::from_millis(5);
/// Without calls for this many ticks, the thread sleeps until the next call: waking it costs that call about as much as two ticks.
const IDLE_TICKS: u32 = 4;
/// A VM that was interrupted and has not noticed for so long is stuck. Nothing that a script can call takes a tenth of it; a
/// machine without a processor to spare might hold it up for a while.
const STUCK: Duration = Duration::from_secs(2);

/// Why a call was ended. What the script made of the error does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abort {
    /// It computed too long.
    Time,
    /// It filled the memory of the VM.
    Memory,
}

/// The VM's side of a watchdog. Drop it before the VM.
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    meter: Rc<Meter>,
    thread: thread::Thread,
}

/// What the running call may still use up; shared by the interrupt and by the host's functions.
pub(super) struct Meter {
    limits: Rc<Limits>,
    /// Of the call that runs; between calls there is none.
    present: Cell<Option<Present>>,
    shared: Arc<Shared>,
    interrupt: Cell<Option<Interrupt>>,
    /// The stack of the place where the running call was aborted first: the script may catch the error.
    place: RefCell<String>,
    /// The memory was full once: what is left of the VM may be too little.
    exhausted: Cell<bool>,
    noticed: Noticed,
}

/// What one call has used. It is the call's own between its slices; so many calls may wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Budget {
    spent: Duration,
}

/// The call that runs.
#[derive(Clone, Copy)]
struct Present {
    budget: Budget,
    /// What the thread had computed when it was last measured in this slice.
    measured: Option<Duration>,
    aborted: Option<Abort>,
    /// The coroutine of the call itself. Only this one may be suspended: suspending a coroutine that the script made would
    /// look to the script as if it had yielded.
    coroutine: *mut ffi::lua_State,
}

struct Shared {
    /// Odd while a slice runs.
    slice: AtomicU64,
    /// How often the thread has found the present slice running.
    looks: AtomicU32,
    /// The slice has lasted long enough, and the VM has not noticed yet.
    due: AtomicBool,
    /// The host waits for something in the middle of a slice: the VM cannot notice.
    outside: AtomicBool,
    /// The thread sleeps and must be woken.
    asleep: AtomicBool,
    /// `None` when the VM is gone.
    interrupt: Mutex<Option<Interrupt>>,
    /// Told when the VM is stuck.
    stuck: CancellationToken,
}

/// The place in the VM where the interrupt function is, and the function.
#[derive(Clone, Copy)]
struct Interrupt {
    place: *mut *mut (),
    function: *mut (),
}

// SAFETY: the place is written as an atomic only, and only under the lock that the VM's side takes before the VM goes.
unsafe impl Send for Interrupt {}

impl Watchdog {
    /// Watches this VM from a thread of its own; `stuck` is cancelled if the VM no longer listens.
    pub(super) fn of(
        lua: &Lua,
        limits: &Rc<Limits>,
        stuck: CancellationToken,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            slice: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            due: AtomicBool::new(false),
            outside: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            interrupt: Mutex::new(None),
            stuck,
        });
        let meter = Rc::new(Meter {
            limits: Rc::clone(limits),
            present: Cell::default(),
            shared: Arc::clone(&shared),
            interrupt: Cell::new(None),
            place: RefCell::default(),
            exhausted: Cell::new(false),
            noticed: Noticed::default(),
        });
        let interrupt = Interrupt::of(lua, Rc::clone(&meter));
        meter.interrupt.set(Some(interrupt));
        *shared.lock() = Some(interrupt);
        gauge::watch(lua, &meter);
        let watching = Arc::clone(&shared);
        // Ends by itself when the VM is gone: nobody needs to join it.
        let handle = thread::Builder::new()
            .name("lua-watchdog".into())
            .stack_size(64 * 1024)
            .spawn(move || watching.watch())?;
        Ok(Watchdog { shared, meter, thread: handle.thread().clone() })
    }

    /// Returns the meter of the running call.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    /// Tells functions that compute long when the running call has to end.
    pub(super) fn pace(meter: &Rc<Meter>) -> Pace {
        let meter = Rc::clone(meter);
        Rc::new(move || meter.is_over())
    }

    /// Begins a slice of the call that is this coroutine; it ends when what this gives is dropped or ended.
    pub(super) fn begin(&self, coroutine: &Thread, budget: Budget) -> Slice<'_> {
        // A call that has computed for long is measured exactly.
        let is_long = !budget.spent.is_zero();
        let measured = is_long.then(running_time);
        let coroutine = coroutine.state();
        self.meter.place.take();
        self.meter.present.set(Some(Present { budget, measured, aborted: None, coroutine }));
        self.shared.slice.fetch_add(1, Ordering::SeqCst);
        // After the count: the thread looks at the count once more after it has said that it sleeps.
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Slice(self)
    }

    /// Ends the slice. Gives what is left for the next one, and why there must be none.
    fn end(&self) -> (Budget, Option<Abort>) {
        let Watchdog { shared, meter, .. } = self;
        let Some(mut present) = meter.present.take() else { return (Budget::default(), None) };
        shared.slice.fetch_add(1, Ordering::SeqCst);
        shared.due.store(false, Ordering::Relaxed);
        let looks = shared.looks.swap(0, Ordering::Relaxed);
        if looks > 0 {
            let exact = present.measured.map(|it| running_time().saturating_sub(it));
            // The end of a call that has done its work is no time to abort it.
            present.budget.spend(exact.unwrap_or(TICK * looks));
        }
        (present.budget, present.aborted)
    }
}

impl Deadline for Meter {
    fn is_over(&self) -> bool {
        Meter::is_over(self)
    }
}

impl Meter {
    /// Returns whether the running call must end, for natives of the host that take long: they look every few microseconds.
    pub(super) fn is_over(&self) -> bool {
        let Some(mut present) = self.present.get() else { return false };
        if self.shared.due.swap(false, Ordering::Relaxed) {
            self.spend(&mut present);
        }
        present.aborted.is_some()
    }

    /// Returns an error of the VM. It does not matter if the script catches it: the call counts as aborted.
    pub(super) fn error(&self, abort: Abort) -> mlua::Error {
        mlua::Error::runtime(raised::of_abort(&self.limits, abort))
    }

    /// Aborts the running call because the memory is full.
    pub(super) fn exhaust(&self) {
        self.exhausted.set(true);
        let full = |it: Present| Present { aborted: Some(Abort::Memory), ..it };
        self.present.set(self.present.get().map(full));
        if let Some(interrupt) = self.interrupt.get() {
            interrupt.arm();
        }
    }

    /// Takes the stack of the place where the running call was aborted first; empty if that is not known.
    pub(super) fn take_place(&self) -> String {
        self.place.take()
    }

    /// Returns whether the VM should be replaced.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Lets the host do something that may be held up by others, such as writing to a pipe.
    pub(super) fn outside<T>(&self, something: impl FnOnce() -> T) -> T {
        self.shared.outside.store(true, Ordering::Relaxed);
        let result = something();
        self.shared.outside.store(false, Ordering::Relaxed);
        result
    }

    /// Records that a string of this length was made, or that calls are nested deeper. Called while the VM is in any state.
    pub(super) fn notice(&self, text: Option<usize>, is_deeper: bool) {
        let is_long = text.is_some_and(|it| it > self.limits.sandbox.string_size);
        if is_long {
            self.noticed.long.set(true);
        }
        if is_deeper {
            self.noticed.deep.set(true);
        }
        if let Some(interrupt) = self.interrupt.get().filter(|_| is_long || is_deeper) {
            interrupt.arm();
        }
    }

    /// Ignores the strings that were made just now: they are not the script's.
    pub(super) fn forget_texts(&self) {
        self.noticed.long.set(false);
    }

    /// Looks closely at what was noticed.
    fn look(&self, lua: &Lua) -> mlua::Result<()> {
        let Sandbox { string_size, call_depth, .. } = self.limits.sandbox;
        if self.noticed.long.take() {
            return Err(mlua::Error::runtime(limits::too_long_text(string_size)));
        }
        if self.noticed.deep.get() {
            let depth = gauge::depth(lua);
            if depth > call_depth && self.noticed.may_raise() {
                return Err(mlua::Error::runtime(limits::too_deep_calls(call_depth)));
            }
            // Near the limit, each step is looked at: the stack has grown already for some more.
            if depth >= call_depth / 2 {
                return Ok(());
            }
            self.noticed.deep.set(false);
        }
        self.disarm();
        Ok(())
    }

    /// Decides at an armed interrupt: continue, yield to other calls, or abort.
    fn interrupted(&self, lua: &Lua) -> mlua::Result<VmState> {
        let is_due = self.shared.due.swap(false, Ordering::Relaxed);
        if let Some(mut present) = self.present.get() {
            if is_due {
                self.spend(&mut present);
            }
            if let Some(abort) = present.aborted {
                if self.place.borrow().is_empty() {
                    let world = World::of(lua)?;
                    let place = world.traceback.get().map(|it| it.call::<String>(()));
                    self.place.replace(place.and_then(Result::ok).unwrap_or_default());
                }
                // Stays armed: a script that catches the error gets the next one at its next step.
                return Err(self.error(abort));
            }
            self.look(lua)?;
            let is_own = is_due && std::ptr::eq(present.coroutine, lua.state());
            return Ok(if is_own { VmState::Yield } else { VmState::Continue });
        }
        self.disarm();
        Ok(VmState::Continue)
    }

    /// Charges the running call with what it has computed since it was last measured.
    fn spend(&self, present: &mut Present) {
        let now = running_time();
        let used = present.measured.replace(now).map_or(SLICE, |it| now.saturating_sub(it));
        present.budget.spend(used);
        if present.budget.spent >= self.limits.cpu && present.aborted.is_none() {
            present.aborted = Some(Abort::Time);
        }
        self.present.set(Some(*present));
    }

    fn disarm(&self) {
        if let Some(interrupt) = self.interrupt.get() {
            interrupt.disarm();
        }
    }

    /// Ends the slice at the next step.
    #[cfg(test)]
    pub(super) fn end_slice(&self) {
        self.shared.due.store(true, Ordering::Relaxed);
        if let Some(interrupt) = self.interrupt.get() {
            interrupt.arm();
        }
    }
}

/// A slice that runs. It ends also when the host panics in it.
pub(super) struct Slice<'a>(&'a Watchdog);

impl Slice<'_> {
    /// Ends it. Gives what the call has used, and why it must end, if it must.
    pub(super) fn end(self) -> (Budget, Option<Abort>) {
        self.0.end()
    }
}

impl Drop for Slice<'_> {
    fn drop(&mut self) {
        // Nothing is left to end after `end`.
        let _ended = self.0.end();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.shared.lock() = None;
        self.thread.unpark();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Interrupt>> {
        self.interrupt.lock()
    }

    /// Runs the thread.
    fn watch(&self) {
        let (mut seen, mut since, mut idle) = (0, Instant::now(), 0);
        while self.lock().is_some() {
            let slice = self.slice.load(Ordering::SeqCst);
            if slice.is_multiple_of(2) {
                idle += 1;
            } else {
                idle = 0;
                self.looks.fetch_add(1, Ordering::Relaxed);
                if slice != seen {
                    (seen, since) = (slice, Instant::now());
                } else if self.due.load(Ordering::Relaxed) {
                    if self.outside.load(Ordering::Relaxed) {
                        since = Instant::now();
                    } else if since.elapsed() >= STUCK {
                        self.stuck.cancel();
                    }
                    // Again: the VM may have taken the interrupt away at the moment when it was put there.
                    self.arm();
                } else if since.elapsed() >= SLICE {
                    self.due.store(true, Ordering::Relaxed);
                    self.arm();
                    since = Instant::now();
                }
            }
            if idle >= IDLE_TICKS {
                self.sleep();
                idle = 0;
            }
            // After a sleep, too: looking at once would find the call that has ended it, and charge it, however short it is.
            thread::park_timeout(TICK);
        }
    }

    fn arm(&self) {
        if let Some(interrupt) = &*self.lock() {
            interrupt.arm();
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        if self.slice.load(Ordering::SeqCst).is_multiple_of(2) && self.lock().is_some() {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

impl Interrupt {
    /// Makes the interrupt of this VM, not armed.
    fn of(lua: &Lua, meter: Rc<Meter>) -> Self {
        lua.set_interrupt(move |lua| meter.interrupted(lua));
        // SAFETY: the state is alive, and its table of callbacks lives as long as it.
        let place = unsafe { &raw mut (*ffi::lua_callbacks(lua.state())).interrupt };
        // An optional function pointer is a pointer that may be null.
        let place = place.cast::<*mut ()>();
        // SAFETY: aligned and initialized by `set_interrupt`; nobody else knows the place yet.
        let function = unsafe { AtomicPtr::from_ptr(place) }.load(Ordering::Relaxed);
        let interrupt = Interrupt { place, function };
        interrupt.disarm();
        interrupt
    }

    fn arm(&self) {
        // SAFETY: the VM is alive while the lock around `self` holds `Some`. Luau reads the place anew at every safe point
        // and allows to change it at any time.
        unsafe { AtomicPtr::from_ptr(self.place) }.store(self.function, Ordering::Relaxed);
    }

    fn disarm(&self) {
        // SAFETY: called on the VM's own thread, with the VM alive.
        unsafe { AtomicPtr::from_ptr(self.place) }.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Budget {
    fn spend(&mut self, used: Duration) {
        self.spent = self.spent.saturating_add(used);
    }

    /// Restores one second of CPU budget per second of waiting: a long-lived daemon is not aborted for the sum of its short turns.
    pub(super) fn pay_back(&mut self, waited: Duration) {
        self.spent = self.spent.saturating_sub(waited);
    }
}
