//! The locks of `kopf.lock` for the engines, which call the function and end the call.

use std::sync::Arc;

use crate::call::{CallId, Cause, Invocation, Locks, Wanting};

/// Returns the identity of a call among the running ones.
fn call_id(invocation: &Arc<Invocation>) -> CallId {
    Arc::as_ptr(invocation).addr()
}

/// Returns a call as one that waits for locks.
pub(super) fn wanting(present: &Arc<Invocation>) -> Wanting {
    Wanting { call: call_id(present), name: shown(present) }
}

/// Releases the locks of a call that has ended.
pub(crate) fn free_all(invocation: &Arc<Invocation>) {
    invocation.services.locks.free_all(call_id(invocation));
}

/// Returns the locks of the operator that a call belongs to.
pub(crate) fn locks_of(present: Option<&Arc<Invocation>>) -> Locks {
    present.map(|it| it.services.locks.clone()).unwrap_or_default()
}

/// Returns a call as errors name it.
fn shown(present: &Invocation) -> String {
    let handler = &present.handler;
    let Cause::Object(cause) = &present.cause else { return handler.to_string() };
    let object = cause.current();
    let header = object.header();
    let namespace = header.namespace.as_deref().map(|it| format!("{it}/")).unwrap_or_default();
    format!("{handler} of {namespace}{}", header.name.as_deref().unwrap_or_default())
}
