//! What the call is about that a thread runs: for the functions of the host that depend on it.

use std::{cell::RefCell, sync::Arc};

use super::control::given;
use crate::call::{Cause, Invocation};
use crate::scripting::functions::locking;

thread_local! {
    static PRESENT: RefCell<Option<Arc<Invocation>>> = const { RefCell::new(None) };
}

/// Runs a call that is about this. A thread runs one call at a time.
pub(super) fn during<T>(invocation: Option<Arc<Invocation>>, call: impl FnOnce() -> T) -> T {
    /// Forgets it and frees its locks, also after a panic.
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            if let Some(invocation) = PRESENT.take() {
                given(|| locking::free_all(&invocation));
            }
        }
    }
    PRESENT.set(invocation);
    let _forget = Forget;
    call()
}

/// Makes the trees of the object that the call is about, which are made once: in the memory of the host, who keeps them.
pub(super) fn parse(invocation: &Invocation) {
    if let Cause::Object(cause) = &invocation.cause {
        given(|| {
            cause.current().body();
            cause.object.body();
        });
    }
}

/// Returns the invocation of the running call; `None` at the top level and in calls that are about nothing.
pub(super) fn get() -> Option<Arc<Invocation>> {
    PRESENT.with_borrow(Clone::clone)
}
