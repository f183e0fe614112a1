//! Inline calls: calls that begin where they are awaited, on the operator's thread, in both languages.
//!
//! Most calls take microseconds, which is less than waking the thread of their script. What might delay the operator is kept away from
//! its thread: large values ([`admits`]), scripts with calls that cannot be suspended ([`can_be_suspended`]), functions that took long before
//! ([`LongFunctions`]), and many calls at once ([`InlineShare`]).

mod long_functions;
mod output;
mod share;
mod slice;
mod suspension;

use std::sync::{Arc, atomic::Ordering};

use serde_json::Value;

pub(super) use self::{
    long_functions::LongFunctions,
    output::may_wait,
    share::{InlineShare, LONG, RealInstant},
    slice::{ABORTED_AFTER, InlineSlice},
    suspension::can_be_suspended,
};
use crate::call::{Cause, Invocation};
use crate::logic::object::Object;

/// Maximum size of an object in bytes of its text: touching all of it takes a fraction of a millisecond.
const OBJECT_MAX: usize = 16 << 10;
/// Maximum size of the children of the object, packed, in bytes.
const CHILDREN_MAX: usize = 8 << 10;
/// Maximum size of all indexes, and of all memos of the script, in bytes.
pub(super) const KEPT_MAX: usize = 512 << 10;

/// Returns whether no step of this call is long because of the size of what it may read.
pub(super) fn admits(call: &Invocation) -> bool {
    let indexes = call.services.indexes.all().filter(|it| !it.is_hidden());
    is_about_small_object(call)
        && call.cause.children().is_none_or(|it| it.packed_bytes() <= CHILDREN_MAX)
        && indexes.map(|it| it.bytes().load(Ordering::Relaxed)).sum::<usize>() <= KEPT_MAX
}

/// Returns whether a call is about a small object, or about none.
pub(super) fn is_about_small_object(call: &Invocation) -> bool {
    let Cause::Object(cause) = &call.cause else { return true };
    let current = cause.current();
    let is_same = Arc::ptr_eq(&current, &cause.object);
    is_small(&cause.object) && (is_same || is_small(&current))
}

fn is_small(object: &Object) -> bool {
    match object.size() {
        0 => left_of(object.body(), OBJECT_MAX).is_some(),
        bytes => bytes <= OBJECT_MAX,
    }
}

/// Subtracts the approximate size of a tree, in bytes; `None` if that is more than `left`.
fn left_of(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(3)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
        Value::String(text) => left.checked_sub(text.len()),
        Value::Array(items) => items.iter().try_fold(left, |left, it| left_of(it, left)),
        Value::Object(fields) => fields
            .iter()
            .try_fold(left, |left, (key, it)| left_of(it, left.checked_sub(key.len())?)),
    }
}
