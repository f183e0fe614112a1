//! Whether the call that computes has to end: for functions that repeat something often.
//!
//! What is done once is bounded by the size of its arguments. Loops ask here between their steps.

use std::{cell::RefCell, rc::Rc};

use super::Failure;

/// Says whether the running call has used up its time.
pub(crate) type Pace = Rc<dyn Fn() -> bool>;

thread_local! {
    /// Of the call that computes on this thread.
    static CURRENT: RefCell<Option<Pace>> = const { RefCell::new(None) };
}

/// Lets a function of a library compute under the limits of its caller.
pub(crate) fn within<T>(pace: &Pace, compute: impl FnOnce() -> T) -> T {
    /// Puts back what was before, also after a panic.
    struct Before(Option<Pace>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(Some(Rc::clone(pace))));
    compute()
}

/// One step of something that takes many.
///
/// # Errors
/// The call has used up its time. It ends, whatever is made of the error.
pub(super) fn step() -> Result<(), Failure> {
    let is_over = CURRENT.with_borrow(|it| it.as_ref().is_some_and(|it| it()));
    if is_over { Err("out of time".into()) } else { Ok(()) }
}
