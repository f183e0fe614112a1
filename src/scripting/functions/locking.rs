//! `kopf.lock` and `kopf.try`: what both languages share. The engines call the function.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::kopf::{Call, Done, Outcome};
use crate::call::{CallId, Cause, Invocation, Locks, Wanting};
use crate::logic::handlers::outcome::RaisedKind;
use crate::scripting::values::{
    Nested, duration,
    errors::{ErrorValue, Failed},
};

/// The time limit of waiting for a lock, unless the script sets one.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a name in bytes.
const NAME_MAX: usize = 500;

/// Returns an error that scripts can look at.
fn problem(place: &str, text: &str) -> Failed {
    let kind = RaisedKind::Arbitrary("LockError".into());
    Failed::Raised(ErrorValue::new(kind, format!("{place}: {text}")))
}

/// Identifies a call among all that run.
fn call_id(invocation: &Arc<Invocation>) -> CallId {
    Arc::as_ptr(invocation).addr()
}

/// `kopf.lock(NAME, OPTIONS)`: the call waits for the lock.
pub(crate) fn lock(call: &Call<'_>) -> Outcome {
    let place = &call.place;
    let present = call.caller.present().filter(|it| it.attempt.is_some());
    let present = present.ok_or_else(|| {
        problem(
            place,
            "locks can be used in handlers only, not at the top level of a script or in filters",
        )
    })?;
    let name = name(call)?;
    let timeout = timeout(call)?.unwrap_or(TIMEOUT);
    let locks = present.services.locks.clone();
    let wanting = Wanting { call: call_id(&present), name: shown(&present) };
    let ticket = locks.enter(&name, wanting).map_err(|it| problem(place, &it))?;
    let (number, place) = (ticket.number, place.clone());
    let wait = async move { locks.wait(ticket, timeout).await.map_err(|it| problem(&place, &it)) };
    Ok(Done::Lock(number, Box::pin(wait)))
}

/// Frees the locks of a call that has ended.
pub(crate) fn free_all(invocation: &Arc<Invocation>) {
    invocation.services.locks.free_all(call_id(invocation));
}

/// Returns the locks of the operator that a call belongs to.
pub(crate) fn locks_of(present: Option<&Arc<Invocation>>) -> Locks {
    present.map(|it| it.services.locks.clone()).unwrap_or_default()
}

/// Returns the name of a lock: a string, or that of an object.
fn name(call: &Call<'_>) -> Result<String, Failed> {
    let place = &call.place;
    let first = call.arguments.first();
    let handled = first.and_then(|it| it.call()).and_then(|it| it.object());
    let value = match (handled, first) {
        (Some(object), _) => Value::clone(object.body()),
        (None, Some(it)) => it.data(place)?,
        (None, None) => Value::Null,
    };
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = match &value {
        Value::String(name) => name.clone(),
        Value::Object(_) if !text("/metadata/name").is_empty() => {
            let kind = [text("/apiVersion"), text("/kind")].join("/");
            format!("{kind}/{}/{}", text("/metadata/namespace"), text("/metadata/name"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            String::new()
        }
    };
    if name.is_empty() {
        return Err(problem(
            place,
            "the first argument must be a name, an object with a name, or ctx",
        ));
    }
    if name.len() > NAME_MAX {
        return Err(problem(place, &format!("the name is longer than {NAME_MAX} bytes")));
    }
    Ok(name)
}

fn timeout(call: &Call<'_>) -> Result<Option<Duration>, Failed> {
    let place = &call.place;
    let Some(options) = call.arguments.get(1).filter(|it| !it.is_nil()) else { return Ok(None) };
    if options.inside() != Some(Nested::Map) {
        return Err(problem(place, "the second argument must be a map of options, or a function"));
    }
    let mut timeout = None;
    options.visit(&mut |name, value| {
        if name != Some("timeout") {
            let name = name.unwrap_or_default();
            return Err(problem(place, &format!("there is no option `{name}`, only `timeout`")));
        }
        timeout = duration(&value.data(place)?).map_err(|it| problem(place, &it))?;
        Ok(())
    })?;
    Ok(timeout)
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
