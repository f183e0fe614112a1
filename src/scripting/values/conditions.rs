//! `ctx.conditions`: the conditions in the status of the handled object, the same for both languages.
//!
//! A script sees its own changes at once. They are sent with the rest of the patch, and are applied to the latest version of the
//! object.

use std::sync::Arc;

use serde_json::Value;

use crate::call::ObjectCause;
use crate::logic::{
    change::patch::{Patch, Transformation},
    object::conditions::{self, Condition, ConditionChange, ConditionStatus},
};
use crate::ports::Clock;

/// Maximum number of conditions that one call may set and remove: objects have a dozen.
const CONDITIONS_MAX: usize = 100;

/// The conditions of the object of one call.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    cause: ObjectCause,
    clock: Clock,
}

impl Conditions {
    /// Returns the conditions for a call with this cause.
    pub(crate) fn new(cause: ObjectCause, clock: Clock) -> Self {
        Conditions { cause, clock }
    }

    /// Returns whether both belong to the same object.
    pub(crate) fn is_of(&self, other: &Conditions) -> bool {
        Arc::ptr_eq(&self.cause.patch, &other.cause.patch)
    }

    /// Sets a condition. The arguments are the type, the status, the reason and the message; null is left out.
    ///
    /// Returns no value: it is often the last statement of a handler, which in Rhai is the handler's result.
    pub(crate) fn set(&self, arguments: &[Value]) -> Result<(), String> {
        let [kind, status, reason, message] = arguments else {
            return Err(
                "ctx.conditions.set takes a type, a status, a reason and a message".to_owned()
            );
        };
        let condition = self.read(kind, status, reason, message);
        let condition = condition.map_err(|it| format!("ctx.conditions.set: {it}"))?;
        self.change(ConditionChange::Set(condition))
            .map_err(|it| format!("ctx.conditions.set: {it}"))
    }

    fn change(&self, change: ConditionChange) -> Result<(), String> {
        let mut patch = self.cause.patch.lock();
        let is_other = |it: &&Transformation| matches!(it, Transformation::Condition(it) if it.kind() != change.kind());
        if patch.transformations.iter().filter(is_other).count() >= CONDITIONS_MAX {
            return Err(format!("more than {CONDITIONS_MAX} conditions"));
        }
        patch.change_condition(change);
        Ok(())
    }

    fn read(
        &self,
        kind: &Value,
        status: &Value,
        reason: &Value,
        message: &Value,
    ) -> Result<Condition, String> {
        let kind = checked_kind(kind)?;
        let status = ConditionStatus::read(status)?;
        let reason = conditions::reason(optional("reason", reason)?, &kind, status)?;
        let message = conditions::message(optional("message", message)?, &reason);
        Ok(Condition {
            kind,
            status,
            reason,
            message,
            observed_generation: self.generation(),
            now: self.clock.now(),
        })
    }

    /// Returns the observed generation. Without a subresource for the status, each write of it increments the generation, so
    /// recording it would be out of date at once.
    fn generation(&self) -> Option<i64> {
        if !self.cause.resource.subresources.contains("status") {
            return None;
        }
        self.cause.current().body().pointer("/metadata/generation").and_then(Value::as_i64)
    }

    /// Returns the condition of this type; null if there is none.
    pub(crate) fn get(&self, kind: &Value) -> Result<Value, String> {
        let kind = checked_kind(kind).map_err(|it| format!("ctx.conditions.get: {it}"))?;
        Ok(conditions::find(&self.shown(), &kind).cloned().unwrap_or_default())
    }

    /// Returns whether the condition of this type is true.
    pub(crate) fn holds(&self, kind: &Value) -> Result<bool, String> {
        let kind = checked_kind(kind).map_err(|it| format!("ctx.conditions.is_true: {it}"))?;
        Ok(conditions::has(&self.shown(), &kind, ConditionStatus::True))
    }

    /// Removes the condition of this type, even if it is not there: the latest version of the object may have it.
    pub(crate) fn remove(&self, kind: &Value) -> Result<(), String> {
        let kind = checked_kind(kind).map_err(|it| format!("ctx.conditions.remove: {it}"))?;
        self.change(ConditionChange::Remove(kind))
            .map_err(|it| format!("ctx.conditions.remove: {it}"))
    }

    /// Returns all of them, as a list.
    pub(crate) fn json(&self) -> Value {
        self.list().into()
    }

    /// Returns all of them, one by one.
    pub(crate) fn list(&self) -> Vec<Value> {
        conditions::of(&self.shown()).cloned().collect()
    }

    fn shown(&self) -> Value {
        let object = self.cause.current();
        let body = Arc::clone(object.body());
        match self.cause.patch.peek() {
            Some(patch) => patch.conditions_of(&body),
            None => Patch::default().conditions_of(&body),
        }
    }
}

fn checked_kind(value: &Value) -> Result<String, String> {
    let Some(kind) = value.as_str() else {
        return Err(format!(
            "the type of a condition must be a string such as \"Ready\", not {}",
            named(value)
        ));
    };
    conditions::check_kind(kind).map(|()| kind.to_owned())
}

/// Returns a string argument that may be left out.
fn optional<'a>(name: &str, value: &'a Value) -> Result<Option<&'a str>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("the {name} must be a string, not {}", named(value)))
        }
    }
}

fn named(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { value.to_string() }
}
