//! Calls that have ended but are still referenced. A script that keeps `ctx`, or a part such as `ctx.patch`, keeps the whole object
//! of that call: memory of the host, which no VM counts. It is counted here as memory of the script.
//!
//! Handles of a call hold its invocation, so an invocation that is still alive after its caller has continued is held by the script.

use std::{
    collections::BTreeSet,
    ops::Deref,
    sync::{Arc, Weak},
};

use kopf_json::shared::bytes_of;

use crate::call::{BackgroundCause, Cause, ChangeCause, Invocation, ObjectCause, ObjectDetail};
use crate::logic::{
    admission::review::ReviewedRequest,
    object::{
        Object,
        diff::{self, Diff},
    },
};

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
    /// The object of the last call, and the difference of its change: the next call often shares them.
    last: (Weak<Object>, Weak<Diff>),
}

/// The bytes of a call without its object.
const CALL: usize = 1 << 10;
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
        let bytes = weight(call, &mut self.shared(cause));
        self.fresh = self.fresh.saturating_add(bytes);
        self.calls.push(Arc::downgrade(call));
    }

    /// Returns the addresses of the parts that a call shares with the last one, where they have been counted.
    fn shared(&mut self, cause: &ObjectCause) -> BTreeSet<usize> {
        let (mut shared, (object, diff)) = (BTreeSet::new(), &mut self.last);
        if is_same(object, &cause.object) {
            shared.insert(address(&cause.object));
        }
        *object = Arc::downgrade(&cause.object);
        let ObjectDetail::Change(change) = &cause.detail else { return shared };
        if is_same(diff, &change.diff) {
            shared.insert(address(&change.diff));
            shared.extend(change.old.iter().chain(&change.new).map(address));
        }
        *diff = Arc::downgrade(&change.diff);
        shared
    }

    /// Returns whether the calls since the last check may hold enough memory to make another check due.
    pub(crate) fn is_due(&self, memory_limit: usize) -> bool {
        self.fresh > memory_limit / 8 || self.calls.len() > self.seen + CALLS
    }

    /// Checks which calls are still held, and returns their bytes. What several calls share counts once.
    pub(crate) fn look(&mut self) -> usize {
        let (mut held, mut seen) = (0_usize, BTreeSet::new());
        self.calls.retain(|it| {
            let Some(call) = it.upgrade() else { return false };
            if call.callers.are_left() {
                return true;
            }
            held = held.saturating_add(weight(&call, &mut seen));
            true
        });
        self.calls.shrink_to(CALLS);
        (self.held, self.seen, self.fresh) = (held, self.calls.len(), 0);
        held
    }
}

/// Returns the approximate bytes of memory that a call keeps, of those of its parts whose addresses are not in `seen`.
fn weight(call: &Invocation, seen: &mut BTreeSet<usize>) -> usize {
    let Cause::Object(cause) = &call.cause else { return CALL };
    let detail = match &cause.detail {
        ObjectDetail::Change(ChangeCause { old, new, diff, .. }) => {
            let sides = old.iter().chain(new).map(|it| once(it, seen, bytes_of));
            let sides = sides.sum::<usize>();
            sides + once(diff, seen, diff::memory)
        }
        ObjectDetail::Background(BackgroundCause { children, .. }) => {
            let children = children.as_ref().and_then(|it| it.used_tree());
            children.map_or(0, |it| once(it, seen, bytes_of))
        }
        ObjectDetail::Admission(it) => once(&it.request, seen, ReviewedRequest::memory),
        ObjectDetail::Watch(_) | ObjectDetail::Index | ObjectDetail::Conversion => 0,
    };
    let patch = cause.patch.peek().map_or(0, |it| it.merge.values().map(bytes_of).sum());
    CALL + once(&cause.object, seen, Object::memory) + detail + patch
}

/// Returns the bytes of a part, or 0 if it was seen before.
fn once<T>(part: &Arc<T>, seen: &mut BTreeSet<usize>, bytes: impl Fn(&T) -> usize) -> usize {
    if seen.insert(address(part)) { bytes(part) } else { 0 }
}

fn address<T>(part: &Arc<T>) -> usize {
    Arc::as_ptr(part).addr()
}

fn is_same<T>(last: &Weak<T>, part: &Arc<T>) -> bool {
    std::ptr::eq(last.as_ptr(), Arc::as_ptr(part))
}
