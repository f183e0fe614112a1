//! A thread that measures how long the slices of a VM take, and interrupts those that take too long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a call may compute before other calls run.
pub(in crate::scripting) const SLICE: Duration = Duration::from_millis(10);
/// How often the thread checks, and the error of a slice's length.
const TICK: Duration = Duration::from_millis(5);
/// Number of ticks without calls after which the thread sleeps until the next call: waking it costs that call about as much as two ticks.
const IDLE_TICKS: u32 = 4;
/// A VM that has not reacted to the interrupt for this time is stuck. No function that a script can call takes a tenth of it; a machine
/// without a free processor may delay it for a while.
const STUCK: Duration = Duration::from_secs(2);

/// What makes a VM stop at its next step, from any thread.
pub(in crate::scripting) trait Arm: Send + 'static {
    /// Arms the interrupt.
    fn arm(&self);
}

/// The slices of one VM: a slice is one poll of one call.
pub(in crate::scripting) struct Slices<I> {
    /// Odd while a slice runs.
    slice: AtomicU64,
    /// How often the thread has found the current slice running.
    looks: AtomicU32,
    /// The slice has lasted long enough, and the VM has not reacted yet.
    due: AtomicBool,
    /// The host is blocked in the middle of a slice, so the VM cannot react.
    outside: AtomicBool,
    /// The thread sleeps and must be woken.
    asleep: AtomicBool,
    /// `None` once the VM is dropped.
    interrupt: Mutex<Option<I>>,
    /// Cancelled when the VM is stuck.
    stuck: CancellationToken,
}

/// The thread that watches the slices of one VM; it ends when this is dropped, which must happen before the VM is dropped.
pub(in crate::scripting) struct Watch<I> {
    slices: Arc<Slices<I>>,
    thread: thread::Thread,
}

impl<I: Arm> Watch<I> {
    /// Watches the VM of this interrupt from a separate thread.
    pub(in crate::scripting) fn of(
        slices: &Arc<Slices<I>>,
        interrupt: I,
        thread: &str,
    ) -> std::io::Result<Self> {
        *slices.lock() = Some(interrupt);
        let watching = Arc::clone(slices);
        // Ends by itself when the watch is dropped, so it is not joined.
        let handle = thread::Builder::new()
            .name(thread.to_owned())
            .stack_size(64 * 1024)
            .spawn(move || watching.watch())?;
        Ok(Watch { slices: Arc::clone(slices), thread: handle.thread().clone() })
    }

    /// Begins a slice.
    pub(in crate::scripting) fn begin(&self) {
        self.slices.slice.fetch_add(1, Ordering::SeqCst);
        // Must come after the increment: the thread checks the count again after it has announced that it sleeps.
        if self.slices.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    /// Ends the slice. Returns about how long it took, which is zero for short slices.
    pub(in crate::scripting) fn end(&self) -> Duration {
        self.slices.slice.fetch_add(1, Ordering::SeqCst);
        self.slices.due.store(false, Ordering::Relaxed);
        TICK * self.slices.looks.swap(0, Ordering::Relaxed)
    }
}

impl<I> Drop for Watch<I> {
    fn drop(&mut self) {
        *self.slices.lock() = None;
        self.thread.unpark();
    }
}

impl<I> Slices<I> {
    /// Creates the slices of a VM that is not watched yet; `stuck` is cancelled when the VM no longer responds.
    pub(in crate::scripting) fn new(stuck: CancellationToken) -> Self {
        Slices {
            slice: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            due: AtomicBool::new(false),
            outside: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            interrupt: Mutex::new(None),
            stuck,
        }
    }

    /// Returns, once, whether the current slice has lasted long enough.
    pub(in crate::scripting) fn take_due(&self) -> bool {
        self.due.swap(false, Ordering::Relaxed)
    }

    /// Makes the current slice last long enough.
    #[cfg(test)]
    pub(in crate::scripting) fn set_due(&self) {
        self.due.store(true, Ordering::Relaxed);
    }

    /// Runs host code that others may block, such as a write to a pipe.
    pub(in crate::scripting) fn outside<T>(&self, something: impl FnOnce() -> T) -> T {
        self.outside.store(true, Ordering::Relaxed);
        let result = something();
        self.outside.store(false, Ordering::Relaxed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Option<I>> {
        self.interrupt.lock()
    }
}

impl<I: Arm> Slices<I> {
    /// Runs the thread until the VM is dropped.
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
                    // Again: the VM may have disarmed the interrupt just after it was armed.
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
            // Also after a sleep: an immediate check would find the call that ended the sleep, and charge it, however short it is.
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
