//! The invocation of the call that a thread runs, for host functions that depend on it.

use std::{cell::RefCell, sync::Arc};

use super::control::given;
use crate::call::{Cause, Invocation};
use crate::logic::object::Object;
use crate::scripting::functions::locking;

thread_local! {
    static PRESENT: RefCell<Option<Arc<Invocation>>> = const { RefCell::new(None) };
}

/// Runs a call of this invocation. A thread runs one call at a time.
pub(in crate::scripting) fn during<T>(
    invocation: Option<Arc<Invocation>>,
    call: impl FnOnce() -> T,
) -> T {
    /// Clears the invocation and releases its locks, also after a panic.
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

/// Parses the body of the invocation's object for reading it in place, which happens once: it is memory of the host, which keeps it.
pub(in crate::scripting) fn parse(invocation: &Invocation) {
    parse_as(invocation, Object::shared_body);
}

/// Parses the body of the invocation's object as a tree, as [`parse`] does.
pub(in crate::scripting) fn parse_tree(invocation: &Invocation) {
    parse_as(invocation, |it| Arc::clone(it.body()));
}

fn parse_as<T>(invocation: &Invocation, parse: impl Fn(&Object) -> T) {
    if let Cause::Object(cause) = &invocation.cause {
        given(|| {
            parse(&cause.current());
            parse(&cause.object);
        });
    }
}

/// Returns the invocation of the running call; `None` at the top level and in calls without one.
pub(in crate::scripting) fn get() -> Option<Arc<Invocation>> {
    PRESENT.with_borrow(Clone::clone)
}
