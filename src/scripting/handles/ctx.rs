//! The fields of `ctx`: the kwargs of one call, by name, for both languages.
//!
//! Engines call [`kwarg`] on the first use of a field and convert the result to a native value; unused fields cost nothing.

use std::{borrow::Cow, sync::Arc};

use kopf_json::shared::SharedJson;
use serde_json::{Value, json};

use super::{leftovers::CallPart, settings_access::SettingsAccess};
use crate::call::{
    ActivityCause, AdmissionCause, Cause, Index, Invocation, Logger, ObjectCause, ObjectDetail,
    Warnings,
};
use crate::logic::object::{diff::Diff, resource::Resource};
use crate::scripting::{
    handles::{AnyHandle, Border, Memo, PatchHandle},
    surface::KWARGS,
    values::{conditions::Conditions, text::did_you_mean},
};

/// A field of `ctx`, before it is converted to a value of a language.
pub(crate) enum Kwarg {
    /// The handler has no such kwarg, or it is null: nil / `()`.
    Absent,
    /// A small value that is not shared.
    Value(Value),
    /// A read-only part of an object, under these keys; an empty map if it is missing or not a map.
    Part(SharedJson, &'static [&'static str]),
    /// A read-only shared tree of any type.
    Tree(Arc<Value>),
    /// The logger, with its methods.
    Logger(Logger),
    /// A live value that scripts use in place.
    Handle(AnyHandle),
    /// The function `warn`, for admission responses.
    Warn(Warnings),
}

/// Returns all names that `ctx` can have in the existing kinds of handlers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KWARGS.iter().map(|it| it.name)
}

/// Returns a name without an allocation if it is one of [`names`].
pub(crate) fn known(name: &str) -> Cow<'static, str> {
    let known = names().find(|it| *it == name);
    known.map_or_else(|| name.to_owned().into(), Cow::Borrowed)
}

/// Returns the error of reading a field that no `ctx` has; `None` if the `ctx` of some handler has it.
pub(crate) fn unknown(invocation: &Invocation, name: &str) -> Option<String> {
    let indexes = || {
        let seen = invocation.services.indexes.all().filter(|it| !it.is_hidden());
        seen.map(Index::id)
    };
    if names().any(|it| it == name) || indexes().any(|it| **it == *name) {
        return None;
    }
    let mut known: Vec<&str> = names().collect();
    known.extend(indexes().map(|it| &**it));
    let near = did_you_mean(name, known.into_iter(), "ctx.");
    Some(format!("ctx has no `{name}`{near}"))
}

/// The kwargs of daemons and timers that follow changes of the object.
const LIVE: &[&str] =
    &["annotations", "body", "labels", "meta", "name", "namespace", "spec", "status", "uid"];

/// Returns whether the kwarg follows changes of the object, in handlers that support this.
pub(crate) fn is_live(name: &str) -> bool {
    LIVE.contains(&name)
}

/// Returns the kwarg of this name for this call.
pub(crate) fn kwarg(invocation: &Arc<Invocation>, name: &str, border: &Border) -> Kwarg {
    // The ids of indexes are names of the script, so they have precedence.
    if let Some(index) = invocation.services.indexes.get(name).filter(|it| !it.is_hidden()) {
        return Kwarg::Handle(index.clone().into());
    }
    match name {
        "logger" => return Kwarg::Logger(invocation.logger()),
        "memo" => {
            return Kwarg::Handle(Memo::new(invocation.memo.clone(), border.clone()).into());
        }
        "dry" => return Kwarg::Value(invocation.services.is_dry.into()),
        "param" if invocation.attempt.is_some() => return of(invocation.handler.param.clone()),
        // In a filter, there is nothing to stop yet.
        "stopped" if invocation.attempt.is_none() => return Kwarg::Absent,
        _ => {}
    }
    if let Some(attempt) = &invocation.attempt {
        match name {
            "retry" => return Kwarg::Value(attempt.retry.into()),
            "started" => return Kwarg::Value(attempt.started.to_string().into()),
            "runtime" => return Kwarg::Value(attempt.runtime.as_secs_f64().into()),
            _ => {}
        }
    }
    match &invocation.cause {
        Cause::Activity(cause) => of_activity(cause, name),
        Cause::Object(cause) if name == "conditions" => {
            let conditions = Conditions::new(cause.clone(), invocation.services.clock);
            Kwarg::Handle(CallPart::new(conditions, invocation).into())
        }
        Cause::Object(cause) if name == "patch" => {
            let patch = CallPart::new(Arc::clone(&cause.patch), invocation);
            Kwarg::Handle(PatchHandle::new(patch, border.clone()).into())
        }
        Cause::Object(ObjectCause { detail: ObjectDetail::Admission(admission), .. })
            if name == "warnings" =>
        {
            Kwarg::Handle(CallPart::new(admission.warnings.clone(), invocation).into())
        }
        Cause::Object(ObjectCause { detail: ObjectDetail::Conversion, .. })
            if name == "from" || name == "to" =>
        {
            let versions = invocation.handler.admission.conversion.as_ref();
            let version = versions.map(|it| if name == "from" { &it.from } else { &it.to });
            of(version.map(|it| it.clone().into()))
        }
        Cause::Object(cause) if name == "parent" => {
            let parent = invocation.services.parent(&invocation.handler, &cause.object);
            parent.map_or(Kwarg::Absent, |it| Kwarg::Tree(Arc::new(it)))
        }
        Cause::Object(cause) => of_object(cause, name),
    }
}

fn of_activity(cause: &ActivityCause, name: &str) -> Kwarg {
    match name {
        "activity" => Kwarg::Value(cause.activity.into()),
        "scheduled" => of(cause.scheduled.as_ref().map(|it| it.to_string().into())),
        "server" => cause.server.clone().map_or(Kwarg::Absent, Kwarg::Tree),
        "settings" => Kwarg::Handle(SettingsAccess::new(Arc::clone(&cause.settings)).into()),
        _ => Kwarg::Absent,
    }
}

fn of_object(cause: &ObjectCause, name: &str) -> Kwarg {
    let object = cause.current();
    let header = object.header();
    let part = |keys| Kwarg::Part(object.shared_body(), keys);
    match name {
        "resource" => Kwarg::Tree(Arc::new(record(&cause.resource))),
        "body" => part(&[]),
        "spec" => part(&["spec"]),
        "status" => part(&["status"]),
        "meta" => part(&["metadata"]),
        "labels" => part(&["metadata", "labels"]),
        "annotations" => part(&["metadata", "annotations"]),
        "uid" => of(header.uid.clone().map(Value::from)),
        "name" => of(header.name.clone().map(Value::from)),
        "namespace" => of(header.namespace.clone().map(Value::from)),
        _ => of_detail(cause, name),
    }
}

fn of_detail(cause: &ObjectCause, name: &str) -> Kwarg {
    match (&cause.detail, name) {
        (ObjectDetail::Watch(kind), "type") => of(kind.map(|it| it.as_str().into())),
        (ObjectDetail::Watch(kind), "event") => {
            let kind = kind.map_or(Value::Null, |it| it.as_str().into());
            let body = Value::clone(cause.object.body());
            Kwarg::Tree(Arc::new(json!({ "type": kind, "object": body })))
        }
        (ObjectDetail::Change(change), "reason") => Kwarg::Value(change.reason.as_str().into()),
        (ObjectDetail::Change(change), "old" | "old_value") => {
            change.old.clone().map_or(Kwarg::Absent, Kwarg::Tree)
        }
        (ObjectDetail::Change(change), "new" | "new_value") => {
            change.new.clone().map_or(Kwarg::Absent, Kwarg::Tree)
        }
        (ObjectDetail::Change(change), "diff") => Kwarg::Tree(Arc::new(listed(&change.diff))),
        (ObjectDetail::Background(background), "stopped") => {
            Kwarg::Handle(background.stopped.clone().into())
        }
        (ObjectDetail::Background(background), "children") => {
            let children = background.children.as_ref();
            children.map_or(Kwarg::Absent, |it| Kwarg::Tree(it.tree()))
        }
        (ObjectDetail::Admission(admission), name) => of_admission(admission, name),
        (
            ObjectDetail::Watch(_)
            | ObjectDetail::Change(_)
            | ObjectDetail::Background(_)
            | ObjectDetail::Index
            | ObjectDetail::Conversion,
            _,
        ) => Kwarg::Absent,
    }
}

fn of_admission(cause: &AdmissionCause, name: &str) -> Kwarg {
    let request = &cause.request;
    let tree = |it: Option<&Arc<Value>>| it.cloned().map_or(Kwarg::Absent, Kwarg::Tree);
    match name {
        "dryrun" => Kwarg::Value(request.dry_run.into()),
        "operation" => of(request.operation.clone().map(Value::from)),
        "subresource" => of(request.subresource.clone().map(Value::from)),
        "userinfo" => Kwarg::Tree(Arc::clone(&request.user_info)),
        "options" => tree(request.options.as_ref()),
        "headers" => Kwarg::Tree(Arc::clone(cause.client.headers())),
        "sslpeer" => Kwarg::Tree(Arc::clone(&cause.client.certificate)),
        "old" | "old_value" => tree(request.old_object()),
        "new" | "new_value" => tree(request.new_object()),
        "diff" => Kwarg::Tree(Arc::new(listed(request.diff()))),
        "warn" => Kwarg::Warn(cause.warnings.clone()),
        _ => Kwarg::Absent,
    }
}

/// Returns `ctx.diff` as a list.
fn listed(diff: &Diff) -> Value {
    let items = diff.iter().map(|it| {
        json!({ "op": it.operation.as_str(), "field": it.field, "old": it.old, "new": it.new })
    });
    items.collect()
}

/// Returns `ctx.resource`, which functions of selectors also receive.
pub(crate) fn record(resource: &Resource) -> Value {
    json!({
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
        "kind": resource.kind,
        "singular": resource.singular,
        "shortcuts": resource.shortcuts,
        "categories": resource.categories,
        "subresources": resource.subresources,
        "namespaced": resource.namespaced,
        "preferred": resource.preferred,
        "verbs": resource.verbs,
    })
}

fn of(value: Option<Value>) -> Kwarg {
    value.filter(|it| !it.is_null()).map_or(Kwarg::Absent, Kwarg::Value)
}
