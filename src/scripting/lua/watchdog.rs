//! Aborts calls that compute too long, at no cost for those that do not.
//!
//! Luau calls an interrupt function at every loop iteration and call, if one is set; a permanent one doubles the time of hot loops. So none
//! is set while calls are short: a separate thread ([`Watch`]) measures how long the current slice takes, and sets the interrupt when it
//! takes too long. The interrupt yields to other calls, and aborts a call that has used up its budget. Short slices never read a
//! clock: when the thread finds one running, the call is charged with the time between two checks, which is right on average.
//!
//! An interrupt cannot stop a native function that does not return. The thread detects this and reports that the VM is stuck; its owner can
//! only abandon the VM and create another.
//!
//! Strings that are too long, and calls that are nested too deep, arm the interrupt too ([`gauge`]). It raises an error of the script: at
//! its next step, not within the native function that made the string; until then, the memory limit applies.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use kopf_luau::{
    gauge::{self, Notice},
    interrupt::{Interrupt, Trigger},
};
use mlua::{Lua, Thread, VmState, lua_State};
use tokio_util::sync::CancellationToken;

use super::{raised, world::World};
use crate::scripting::{
    actor::{
        script::VmLimits,
        watch::{Arm, SLICE, Slices, Watch},
    },
    functions::Pace,
    inline::{ABORTED_AFTER, InlineSlice},
    script::running_time::running_time,
    values::{account::Deadline, limits},
};
use crate::settings::Sandbox;

/// Why a call was aborted; scripts cannot prevent it by catching the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abort {
    /// It computed too long.
    Time,
    /// It filled the memory of the VM.
    Memory,
    /// It computed too long inline, without a point at which it could be suspended.
    Inline,
}

/// The VM's side of a watchdog. Drop it before the VM.
pub(super) struct Watchdog {
    watch: Watch<Trigger>,
    meter: Rc<Meter>,
}

/// What the running call may still use; shared by the interrupt and the functions of the host.
pub(super) struct Meter {
    limits: Rc<VmLimits>,
    /// The running call; `None` between calls.
    present: Cell<Option<WatchedCall>>,
    slices: Arc<Slices<Trigger>>,
    interrupt: OnceCell<Interrupt>,
    /// The stack at which the running call was first aborted. Kept because the script may catch the error.
    place: RefCell<String>,
    /// Whether the memory was full once: the VM may be unusable.
    exhausted: Cell<bool>,
    noticed: Noticed,
    /// The slice that runs inline, if one does.
    inline: Cell<Option<InlineSlice>>,
}

/// What was detected and is not checked yet.
#[derive(Default)]
struct Noticed {
    /// A string is longer than allowed.
    long: Cell<bool>,
    /// Calls may be nested deeper than allowed.
    deep: Cell<bool>,
    /// Steps until an error is raised again.
    pause: Cell<u32>,
}

/// What one call has used. Each call keeps its own between slices, so it is small: many calls may wait.
#[derive(Clone, Copy, Default)]
pub(super) struct CpuBudget {
    spent: Duration,
}

/// The running call, with the CPU time that it has used.
#[derive(Clone, Copy)]
struct WatchedCall {
    budget: CpuBudget,
    /// The CPU time of the thread at the last measurement in this slice.
    measured: Option<Duration>,
    aborted: Option<Abort>,
    /// The coroutine of the call itself. Only this one may be suspended: a coroutine that the script created would look to the script as if
    /// it had yielded.
    coroutine: *mut lua_State,
}

impl Arm for Trigger {
    fn arm(&self) {
        Trigger::arm(self);
    }
}

impl Watchdog {
    /// Watches this VM from a separate thread; `stuck` is cancelled when the VM no longer responds.
    pub(super) fn of(
        lua: &Lua,
        limits: &Rc<VmLimits>,
        stuck: CancellationToken,
    ) -> mlua::Result<Self> {
        let slices = Arc::new(Slices::new(stuck));
        let meter = Rc::new(Meter {
            limits: Rc::clone(limits),
            present: Cell::default(),
            slices: Arc::clone(&slices),
            interrupt: OnceCell::new(),
            place: RefCell::default(),
            exhausted: Cell::new(false),
            noticed: Noticed::default(),
            inline: Cell::default(),
        });
        let interrupted = Rc::clone(&meter);
        let interrupt = Interrupt::of(lua, move |lua| interrupted.interrupted(lua))?;
        let watch = Watch::of(&slices, interrupt.trigger(), "lua-watchdog")?;
        // The meter is new, so it has none yet.
        drop(meter.interrupt.set(interrupt));
        gauge::watch(lua, Rc::clone(&meter));
        Ok(Watchdog { watch, meter })
    }

    /// Returns the meter of the running call.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    /// Returns the check that long-running functions of the host use: whether the running call must end.
    pub(super) fn pace(meter: &Rc<Meter>) -> Pace {
        let meter = Rc::clone(meter);
        Rc::new(move || meter.is_over())
    }

    /// Begins a slice of the call of this coroutine. It ends when the returned value is ended or dropped.
    pub(super) fn begin(&self, coroutine: &Thread, budget: CpuBudget) -> Slice<'_> {
        // A call that has used budget before is measured exactly.
        let is_long = !budget.spent.is_zero();
        let measured = is_long.then(running_time);
        let (coroutine, meter) = (coroutine.state(), self.meter());
        meter.place.take();
        meter.present.set(Some(WatchedCall { budget, measured, aborted: None, coroutine }));
        if meter.is_inline() {
            meter.rest();
            return Slice(self);
        }
        self.watch.begin();
        Slice(self)
    }

    /// Ends the slice. Returns what the call has used, and why it must be aborted, if it must.
    fn end(&self) -> (CpuBudget, Option<Abort>) {
        let meter = self.meter();
        let Some(mut present) = meter.present.take() else { return (CpuBudget::default(), None) };
        if meter.is_inline() {
            meter.disarm();
            return (present.budget, present.aborted);
        }
        let took = self.watch.end();
        if !took.is_zero() {
            let exact = present.measured.map(|it| running_time().saturating_sub(it));
            // Not checked against the limit: a call that has just finished is not aborted.
            present.budget.spend(exact.unwrap_or(took));
        }
        (present.budget, present.aborted)
    }
}

impl Deadline for Meter {
    fn is_over(&self) -> bool {
        Meter::is_over(self)
    }
}

impl Notice for Meter {
    fn notice(&self, text: Option<usize>, is_deeper: bool) {
        let is_long = text.is_some_and(|it| it > self.limits.sandbox.string_size);
        if is_long {
            self.noticed.long.set(true);
        }
        if is_deeper {
            self.noticed.deep.set(true);
        }
        if is_long || is_deeper {
            self.arm();
        }
    }

    fn step(&self, memory: usize) {
        if self.is_due(Some(memory)) {
            self.arm();
        }
    }
}

impl Noticed {
    /// Returns whether an error may be raised at this step. After one, its handlers need some steps at the same depth.
    fn may_raise(&self) -> bool {
        /// More than the host's own handler needs, and little for a script that ignores the error.
        const PAUSE: u32 = 256;
        let pause = self.pause.get();
        self.pause.set(pause.checked_sub(1).unwrap_or(PAUSE));
        pause == 0
    }
}

impl Meter {
    /// Returns whether the running call must end. For long-running functions of the host, which check every few microseconds.
    pub(super) fn is_over(&self) -> bool {
        let Some(mut present) = self.present.get() else { return false };
        if self.is_due(None) {
            self.spend(&mut present);
        }
        present.aborted.is_some()
    }

    /// Makes the next slice inline, or not. Returns the previous one.
    pub(super) fn set_inline(&self, slice: Option<InlineSlice>) -> Option<InlineSlice> {
        self.inline.replace(slice)
    }

    /// Returns whether a call runs inline.
    pub(super) fn is_inline(&self) -> bool {
        self.inline.get().is_some()
    }

    /// Counts a step, of this VM or of a function of the host. Returns whether the slice has lasted long enough, or the memory of
    /// the VM, in bytes, has grown too much for it.
    fn is_due(&self, memory: Option<usize>) -> bool {
        let Some(mut inline) = self.inline.get() else {
            return self.slices.take_due();
        };
        if let Some(memory) = memory {
            inline.check_memory(memory);
        }
        let is_over = inline.step();
        self.inline.set(Some(inline));
        is_over
    }

    /// Returns the error that the VM raises. The call counts as aborted even if the script catches it.
    pub(super) fn error(&self, abort: Abort) -> mlua::Error {
        mlua::Error::runtime(raised::of_abort(&self.limits, abort))
    }

    /// Aborts the running call because the memory is full.
    pub(super) fn exhaust(&self) {
        self.exhausted.set(true);
        let full = |it: WatchedCall| WatchedCall { aborted: Some(Abort::Memory), ..it };
        self.present.set(self.present.get().map(full));
        self.arm();
    }

    /// Takes the stack at which the running call was first aborted; empty if unknown.
    pub(super) fn take_place(&self) -> String {
        self.place.take()
    }

    /// Returns whether the VM should be replaced.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Runs host code that others may block, such as a write to a pipe.
    pub(super) fn outside<T>(&self, something: impl FnOnce() -> T) -> T {
        self.slices.outside(something)
    }

    /// Ignores long strings that were made just now: they belong to the host.
    pub(super) fn forget_texts(&self) {
        self.noticed.long.set(false);
    }

    /// Checks the limits that may be exceeded, and raises the error.
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
            // Near the limit, every step is checked: the stack is already large enough for more calls, so no allocation reports them.
            if depth >= call_depth / 2 {
                return Ok(());
            }
            self.noticed.deep.set(false);
        }
        self.rest();
        Ok(())
    }

    /// Decides at the interrupt whether to continue, yield to other calls, or abort.
    fn interrupted(&self, lua: &Lua) -> mlua::Result<VmState> {
        let is_due = self.is_due(Some(lua.used_memory()));
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

    /// Charges the running call with the time since the last measurement.
    fn spend(&self, present: &mut WatchedCall) {
        let now = running_time();
        let unmeasured = if self.is_inline() { Duration::ZERO } else { SLICE };
        let used = present.measured.replace(now).map_or(unmeasured, |it| now.saturating_sub(it));
        present.budget.spend(used);
        let is_spent = present.budget.spent >= ABORTED_AFTER;
        if let Some(inline) = self.inline.get().filter(|it| is_spent && it.aborts()) {
            self.inline.set(Some(inline.aborted()));
            present.aborted.get_or_insert(Abort::Inline);
        } else if present.budget.spent >= self.limits.cpu {
            present.aborted.get_or_insert(Abort::Time);
        }
        self.present.set(Some(*present));
    }

    fn arm(&self) {
        if let Some(interrupt) = self.interrupt.get() {
            interrupt.arm();
        }
    }

    /// Lets the VM run on until something is due: an inline slice counts its steps, and stays armed when it is over.
    fn rest(&self) {
        let Some(interrupt) = self.interrupt.get() else { return };
        match self.inline.get() {
            None => interrupt.disarm(),
            Some(slice) if slice.is_over() => interrupt.arm(),
            Some(_) => interrupt.count(),
        }
    }

    fn disarm(&self) {
        if let Some(interrupt) = self.interrupt.get() {
            interrupt.disarm();
        }
    }

    /// Ends the slice at the next step.
    #[cfg(test)]
    pub(super) fn end_slice(&self) {
        self.slices.set_due();
        self.arm();
    }
}

/// A running slice. It also ends if the host panics in it.
pub(super) struct Slice<'a>(&'a Watchdog);

impl Slice<'_> {
    /// Ends the slice. Returns what the call has used, and why it must be aborted, if it must.
    pub(super) fn end(self) -> (CpuBudget, Option<Abort>) {
        self.0.end()
    }
}

impl Drop for Slice<'_> {
    fn drop(&mut self) {
        // After `end`, this does nothing.
        let _ended = self.0.end();
    }
}

impl CpuBudget {
    fn spend(&mut self, used: Duration) {
        self.spent = self.spent.saturating_add(used);
    }

    /// Restores one second of CPU budget per second of waiting: a long-lived daemon is not aborted for the sum of its short slices.
    pub(super) fn pay_back(&mut self, waited: Duration) {
        self.spent = self.spent.saturating_sub(waited);
    }
}
