//! Checks in functions that repeat work whether their call must end.
//!
//! A single step is bounded by the size of its arguments. Loops check between their steps.

use std::{cell::RefCell, rc::Rc};

use crate::heap;
use crate::scripting::{functions::outcome::Failure, values::limits};

/// Returns whether the running call has used up its time.
pub(crate) type Pace = Rc<dyn Fn() -> bool>;

/// The limits of one call of a library function.
struct Allowance {
    pace: Pace,
    /// Maximum bytes that it may allocate while it computes: the result is smaller, but that is known only at the end.
    memory: usize,
    /// What the thread held before.
    held: isize,
}

thread_local! {
    /// The limits of the function that computes on this thread.
    static CURRENT: RefCell<Option<Allowance>> = const { RefCell::new(None) };
}

/// Runs a function of a library under the limits of its caller, and with at most `memory` bytes.
pub(crate) fn within<T>(pace: &Pace, memory: usize, compute: impl FnOnce() -> T) -> T {
    /// Restores the previous limits, even after a panic.
    struct Before(Option<Allowance>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let allowance = Allowance { pace: Rc::clone(pace), memory, held: heap::held() };
    let _before = Before(CURRENT.replace(Some(allowance)));
    compute()
}

/// Counts one step of many.
///
/// # Errors
/// The call has used up its time, and ends even if the function ignores the error; or the function allocates too much memory.
pub(super) fn step() -> Result<(), Failure> {
    CURRENT.with_borrow(|it| it.as_ref().map_or(Ok(()), Allowance::check))
}

/// Counts one of very many short steps: the limits are checked only for some of them.
pub(super) fn short_step(number: usize) -> Result<(), Failure> {
    /// Some microseconds of work.
    const LOOK_EVERY: usize = 256;
    if number.is_multiple_of(LOOK_EVERY) { step() } else { Ok(()) }
}

impl Allowance {
    fn check(&self) -> Result<(), Failure> {
        if (self.pace)() {
            return Err("out of time".into());
        }
        let taken = heap::held().wrapping_sub(self.held);
        if usize::try_from(taken).is_ok_and(|it| it > self.memory) {
            return Err(limits::too_much_memory(self.memory).into());
        }
        Ok(())
    }
}
