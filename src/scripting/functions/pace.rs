//! Whether the call that computes has to end: for functions that repeat something often.
//!
//! What is done once is bounded by the size of its arguments. Loops ask here between their steps.

use std::{cell::RefCell, rc::Rc};

use crate::heap;
use crate::scripting::{functions::types::Failure, values::limits};

/// Says whether the running call has used up its time.
pub(crate) type Pace = Rc<dyn Fn() -> bool>;

/// What one function of a library may use up.
struct Allowance {
    pace: Pace,
    /// Bytes it may take while it computes: what it gives is smaller, but that is known at its end only.
    memory: usize,
    /// What the thread held before.
    held: isize,
}

thread_local! {
    /// Of the function that computes on this thread.
    static CURRENT: RefCell<Option<Allowance>> = const { RefCell::new(None) };
}

/// Lets a function of a library compute under the limits of its caller, and take no more than so many bytes.
pub(crate) fn within<T>(pace: &Pace, memory: usize, compute: impl FnOnce() -> T) -> T {
    /// Puts back what was before, also after a panic.
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

/// One step of something that takes many.
///
/// # Errors
/// The call has used up its time: it ends, whatever is made of the error. Or the function takes too much memory.
pub(super) fn step() -> Result<(), Failure> {
    CURRENT.with_borrow(|it| it.as_ref().map_or(Ok(()), Allowance::check))
}

/// The same for one of very many short steps: every so often it looks.
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
