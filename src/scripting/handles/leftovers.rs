//! What calls have left behind. A script that keeps `ctx`, or a part such as `ctx.patch`, keeps the whole object of that call:
//! memory of the host, which no VM counts. Here it is weighed, as the script's.
//!
//! Handles of a call hold its invocation, so one that is still there after its call is held by the script.

use std::{
    ops::Deref,
    sync::{Arc, Weak},
};

use crate::call::{Cause, Invocation, ObjectCause};
use crate::scripting::values::limits;

/// A part of a call in the hands of a script: who keeps it keeps the call, and is found here.
#[derive(Clone, Debug)]
pub(crate) struct CallPart<T> {
    part: T,
    call: Arc<Invocation>,
}

impl<T> CallPart<T> {
    /// A part of this call.
    pub(crate) fn new(part: T, call: &Arc<Invocation>) -> Self {
        CallPart { part, call: Arc::clone(call) }
    }

    /// The call.
    pub(crate) fn call(&self) -> &Invocation {
        &self.call
    }
}

impl<T> Deref for CallPart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

/// The calls of one script that have ended, and may be held.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    calls: Vec<Weak<Invocation>>,
    /// How many there were at the last look.
    seen: usize,
    /// Bytes of those that have ended since.
    fresh: usize,
    /// Bytes of those that were held at the last look.
    held: usize,
}

/// What a call takes besides its object.
const CALL: usize = 1 << 10;
/// A tree takes so many times as much as its text.
const TREE: usize = 4;
/// Calls that may end before a look: each keeps a little memory until then.
const CALLS: usize = 1024;

impl Leftovers {
    /// A call has ended.
    pub(crate) fn add(&mut self, call: &Arc<Invocation>) {
        let Cause::Object(cause) = &call.cause else { return };
        // Several functions may be asked about one call, one after the other.
        if self.calls.last().is_some_and(|it| std::ptr::eq(it.as_ptr(), Arc::as_ptr(call))) {
            return;
        }
        self.fresh = self.fresh.saturating_add(size(cause));
        self.calls.push(Arc::downgrade(call));
    }

    /// Whether so much may be held since the last look that another one is due.
    pub(crate) fn is_due(&self, memory_limit: usize) -> bool {
        self.fresh > memory_limit / 8 || self.calls.len() > self.seen + CALLS
    }

    /// Looks at what is still held: so many bytes.
    pub(crate) fn look(&mut self) -> usize {
        self.held = 0;
        self.calls.retain(|it| match it.upgrade() {
            Some(call) => {
                self.held = self.held.saturating_add(weight(&call));
                true
            }
            None => false,
        });
        self.calls.shrink_to(CALLS);
        (self.seen, self.fresh) = (self.calls.len(), 0);
        self.held
    }
}

fn size(cause: &ObjectCause) -> usize {
    CALL + cause.object.size().saturating_mul(TREE)
}

fn weight(call: &Invocation) -> usize {
    let Cause::Object(cause) = &call.cause else { return CALL };
    let patch = cause.patch.lock();
    let patch = patch.merge.values().map(limits::weight).sum::<usize>();
    size(cause).saturating_add(patch.saturating_mul(TREE))
}
