//! Stops calls that compute too long, at no cost for those that do not.
//!
//! Luau asks an interrupt function at every loop iteration and call, if one is installed; a permanent one doubles the time of
//! hot loops. So none is installed while calls are short: a thread beside the VM watches how long the present slice (one poll
//! of one call) takes and installs the interrupt when it takes too long. The interrupt lets neighbours run by yielding, and
//! aborts a call that has used up its budget. The VM's side reads no clock: it only counts slices.
#![expect(unsafe_code, reason = "the place of Luau's interrupt is a C struct")]

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use mlua::{Lua, Thread, VmState, ffi};
use tokio::time::Instant;

/// How long a call may compute before its neighbours get a turn.
const SLICE: Duration = Duration::from_millis(10);
/// How often the thread looks; the error of a slice's length.
const TICK: Duration = Duration::from_millis(5);
/// Without calls for this many ticks, the thread sleeps until the next call.
const IDLE_TICKS: u32 = 200;
/// Slices until a call is aborted: one second of running time. Waiting does not count.
const SLICES_MAX: u32 = 100;
/// Raised inside the VM to end a call. What the script makes of it does not matter: the call counts as aborted.
pub(super) const ABORT: &str = "the call ran for more than 1 s without waiting and was aborted";

/// The VM's side of a watchdog. Drop it before the VM.
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    present: Rc<Present>,
    thread: thread::Thread,
}

/// The slice that is running, as the interrupt sees it.
#[derive(Default)]
struct Present {
    budget: RefCell<Option<Rc<Budget>>>,
}

/// What one call has used.
pub(super) struct Budget {
    slices: Cell<u32>,
    aborted: Cell<bool>,
    /// The coroutine of the call itself. Only this one may be suspended: suspending a coroutine that the script made would
    /// look to the script as if it had yielded.
    coroutine: *mut ffi::lua_State,
}

struct Shared {
    /// Odd while a slice runs.
    slice: AtomicU64,
    /// The thread sleeps and must be woken.
    asleep: AtomicBool,
    /// `None` when the VM is gone.
    interrupt: Mutex<Option<Interrupt>>,
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
    /// Watches this VM from a thread of its own.
    pub(super) fn of(lua: &Lua) -> std::io::Result<Self> {
        let present = Rc::<Present>::default();
        lua.set_app_data(Rc::clone(&present));
        let interrupt = Interrupt::of(lua, Rc::clone(&present));
        let shared = Arc::new(Shared {
            slice: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            interrupt: Mutex::new(Some(interrupt)),
        });
        let watching = Arc::clone(&shared);
        // Ends by itself when the VM is gone: nobody needs to join it.
        let handle = thread::Builder::new()
            .name("lua-watchdog".into())
            .stack_size(64 * 1024)
            .spawn(move || watching.watch())?;
        Ok(Watchdog { shared, present, thread: handle.thread().clone() })
    }

    /// Begins a slice of a call; it ends when what this gives is dropped.
    pub(super) fn begin(&self, budget: &Rc<Budget>) -> Slice<'_> {
        *self.present.budget.borrow_mut() = Some(Rc::clone(budget));
        self.shared.slice.fetch_add(1, Ordering::SeqCst);
        // After the count: the thread looks at the count once more after it has said that it sleeps.
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Slice(self)
    }
}

/// A slice that runs. It ends also when the host panics in it.
pub(super) struct Slice<'a>(&'a Watchdog);

impl Drop for Slice<'_> {
    fn drop(&mut self) {
        self.0.shared.slice.fetch_add(1, Ordering::SeqCst);
        *self.0.present.budget.borrow_mut() = None;
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
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of the thread.
    fn watch(&self) {
        let (mut seen, mut since, mut idle) = (0, Instant::now(), 0);
        while self.lock().is_some() {
            let slice = self.slice.load(Ordering::SeqCst);
            if slice.is_multiple_of(2) {
                idle += 1;
            } else if slice != seen {
                (seen, since, idle) = (slice, Instant::now(), 0);
            } else if since.elapsed() >= SLICE {
                if let Some(interrupt) = &*self.lock() {
                    interrupt.arm();
                }
                since = Instant::now();
            }
            if idle < IDLE_TICKS {
                thread::park_timeout(TICK);
            } else {
                self.sleep();
                idle = 0;
            }
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
    fn of(lua: &Lua, present: Rc<Present>) -> Self {
        let own = Rc::new(Cell::new(None::<Interrupt>));
        let known = Rc::clone(&own);
        lua.set_interrupt(move |lua| {
            let Some(interrupt) = known.get() else { return Ok(VmState::Continue) };
            let budget = present.budget.borrow().clone();
            budget.map_or_else(
                || {
                    interrupt.disarm();
                    Ok(VmState::Continue)
                },
                |budget| budget.spend(lua, interrupt),
            )
        });
        // SAFETY: the state is alive, and its table of callbacks lives as long as it.
        let place = unsafe { &raw mut (*ffi::lua_callbacks(lua.state())).interrupt };
        // An optional function pointer is a pointer that may be null.
        let place = place.cast::<*mut ()>();
        // SAFETY: aligned and initialized by `set_interrupt`; nobody else knows the place yet.
        let function = unsafe { AtomicPtr::from_ptr(place) }.load(Ordering::Relaxed);
        let interrupt = Interrupt { place, function };
        own.set(Some(interrupt));
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
    /// The whole budget, for the call that this coroutine is.
    pub(super) fn of(coroutine: &Thread) -> Rc<Self> {
        let coroutine = coroutine.state();
        Rc::new(Budget { slices: Cell::new(0), aborted: Cell::new(false), coroutine })
    }

    /// Whether the call was aborted.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.get()
    }

    /// Waiting pays back computing, one for one: a daemon lives long, and should not be aborted for the sum of its short turns.
    pub(super) fn pay_back(&self, waited: Duration) {
        let slices = u32::try_from(waited.as_millis() / SLICE.as_millis()).unwrap_or(u32::MAX);
        self.slices.set(self.slices.get().saturating_sub(slices));
    }

    /// One slice more: go on, let others go on, or abort.
    fn spend(&self, lua: &Lua, interrupt: Interrupt) -> mlua::Result<VmState> {
        self.slices.set(self.slices.get().saturating_add(1));
        if self.slices.get() >= SLICES_MAX {
            // Stays armed: a script that catches the error gets the next one at its next step.
            self.aborted.set(true);
            return Err(mlua::Error::runtime(ABORT));
        }
        interrupt.disarm();
        let own = std::ptr::eq(self.coroutine, lua.state());
        Ok(if own { VmState::Yield } else { VmState::Continue })
    }
}
