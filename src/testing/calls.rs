//! Calls of handlers as the reactor makes them, for tests and benchmarks of scripts alone.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::call::{
    AttemptKwargs, Callers, Cause, ChangeCause, Invocation, Logger, LoggerKind, Memo, ObjectCause,
    ObjectDetail, SharedPatch,
};
use crate::logic::{
    handlers::handler::Handler,
    object::{Object, ObjectRef, reason::Reason, resource::Resource},
};

/// Returns the first call for an object that was created. Changes that the handler requests go into the patch.
pub fn creation(handler: &Arc<Handler>, body: Value, patch: SharedPatch) -> Invocation {
    creation_of(handler, Object::from_value(body), patch)
}

/// Returns the first call for this object, as [`creation`] does.
pub fn creation_of(handler: &Arc<Handler>, object: Object, patch: SharedPatch) -> Invocation {
    let change = ChangeCause {
        reason: Reason::Create,
        old: None,
        new: Some(Arc::clone(object.body())),
        diff: Arc::default(),
    };
    let cause = ObjectCause {
        resource: Arc::new(Resource::default()),
        object: Arc::new(object),
        patch,
        detail: ObjectDetail::Change(change),
    };
    Invocation {
        handler: handler.for_scripts(),
        attempt: Some(AttemptKwargs {
            retry: 0,
            started: Timestamp::UNIX_EPOCH,
            runtime: Duration::ZERO,
        }),
        cause: Cause::Object(cause),
        memo: Memo::default(),
        logger: Logger::of_object(LoggerKind::Full, Arc::new(ObjectRef::default())),
        services: Arc::default(),
        children: None,
        callers: Callers::default(),
    }
}
