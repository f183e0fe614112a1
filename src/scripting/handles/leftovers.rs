//! Calls that have ended but are still referenced. A script that keeps `ctx`, or a part such as `ctx.patch`, keeps the whole object
//! of that call: memory of the host, which no VM counts. It is counted here as memory of the script.
//!
//! Handles of a call hold its invocation, so an invocation that is still alive after its call is held by the script.

use std::{
    ops::Deref,
    sync::{Arc, Weak},
};

use kopf_json::shared::SharedJson;

use crate::call::{Cause, Invocation, ObjectCause};
use crate::logic::object::measure;

/// A part of a call that scripts can keep. It keeps the call alive.
#[derive(Clone, Debug)]
pub(crate) struct CallPart<T> {
    part: T,
    call: Arc<Invocation>,
}

impl<T> CallPart<T> {
    /// Wraps a part of this call.
    pub(crate) fn new(part: T, call: &Arc<Invocation>) -> Self {
        CallPart { part, call: Arc::clone(call) }
    }

    /// Returns the call that it belongs to.
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

/// The calls of one script that have ended and may still be held.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    calls: Vec<Weak<Invocation>>,
    /// The number of calls at the last check.
    seen: usize,
    /// The bytes of the calls that have ended since.
    fresh: usize,
    /// The bytes of the calls that were held at the last check.
    held: usize,
}

/// The bytes of a call without its object.
const CALL: usize = 1 << 10;
/// The ratio of the memory of a tree to the size of its JSON.
const TREE: usize = 4;
/// Maximum number of calls between two checks: each keeps a little memory until the next one.
const CALLS: usize = 1024;

impl Leftovers {
    /// Records that a call has ended.
    pub(crate) fn add(&mut self, call: &Arc<Invocation>) {
        let Cause::Object(cause) = &call.cause else { return };
        // Several functions may be called for one invocation, one after the other.
        if self.calls.last().is_some_and(|it| std::ptr::eq(it.as_ptr(), Arc::as_ptr(call))) {
            return;
        }
        self.fresh = self.fresh.saturating_add(size(cause));
        self.calls.push(Arc::downgrade(call));
    }

    /// Returns whether the calls since the last check may hold enough memory to make another check due.
    pub(crate) fn is_due(&self, memory_limit: usize) -> bool {
        self.fresh > memory_limit / 8 || self.calls.len() > self.seen + CALLS
    }

    /// Checks which calls are still held, and returns their bytes.
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

/// Estimates the memory of a tree from the size of its JSON.
fn weight_of_text(bytes: usize) -> usize {
    bytes.saturating_mul(TREE)
}

/// Estimates the memory of JSON whose text has this number of bytes; 0 if that is not known.
pub(crate) fn weight_of(json: &SharedJson, text: usize) -> usize {
    match json {
        SharedJson::Tree(_) if text > 0 => weight_of_text(text),
        SharedJson::Tree(_) | SharedJson::Tape(_) => json.bytes(),
    }
}

fn size(cause: &ObjectCause) -> usize {
    CALL + weight_of_text(cause.object.size())
}

fn weight(call: &Invocation) -> usize {
    let Cause::Object(cause) = &call.cause else { return CALL };
    let patch = cause.patch.peek().map_or(0, |it| measure::bytes_of(&it.merge));
    size(cause).saturating_add(patch.saturating_mul(TREE))
}
