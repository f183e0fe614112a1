//! Refusals: Kubernetes `Status` objects, with the messages of the real server.

pub(crate) mod go;
pub(crate) mod path;
mod problem;

use std::{borrow::Cow, collections::BTreeSet, fmt};

use serde_json::{Value, json};

pub(crate) use self::problem::{ProblemKind, ValidationProblem};
use crate::resource::ResourceDef;

/// The reason for which a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// The object and the causes; the real server leaves them out of general errors.
    ///
    /// Boxed, because every `Result` in this crate is as large as its error.
    pub details: Option<Box<Value>>,
}

impl Refusal {
    pub(crate) fn not_found(def: &ResourceDef, name: &str) -> Self {
        let message = format!("{} {name:?} not found", def.qualified());
        Self::about(404, "NotFound", message, def, name)
    }

    pub(crate) fn already_exists(def: &ResourceDef, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", def.qualified());
        Self::about(409, "AlreadyExists", message, def, name)
    }

    /// Refuses a write with an older version than the stored one.
    pub(crate) fn conflict(def: &ResourceDef, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: the object has been modified; \
             please apply your changes to the latest version and try again",
            def.qualified()
        );
        Self::about(409, "Conflict", message, def, name)
    }

    /// Refuses an invalid body. `kind` is the qualified kind, such as `Deployment.apps`.
    pub(crate) fn invalid(
        group: &str,
        kind: &str,
        name: &str,
        problems: &[ValidationProblem],
    ) -> Self {
        let mut seen = BTreeSet::new();
        let mut texts: Vec<String> =
            problems.iter().map(|it| format!("{}: {}", it.field, it.text())).collect();
        texts.retain(|it| seen.insert(it.clone()));
        let text = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {text}", join(kind, group));
        let causes = problems
            .iter()
            .map(|it| json!({ "reason": it.reason(), "message": it.text(), "field": it.field }));
        let causes: Vec<Value> = causes.collect();
        let mut details = json!({ "name": name, "group": group, "kind": kind, "causes": causes });
        if let Some(fields) = details.as_object_mut() {
            fields.retain(|_, value| value != "");
        }
        Self { details: Some(details.into()), ..Self::general(422, "Invalid", message) }
    }

    /// Refuses a JSON patch that cannot be applied, including a failed `test`.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: Some(json!({}).into()), ..Self::general(422, "Invalid", message) }
    }

    /// Refuses a new object in a namespace that is being deleted.
    pub(crate) fn terminating(def: &ResourceDef, namespace: &str, name: &str) -> Self {
        let why = format!("namespace {namespace} is being terminated");
        let message = format!(
            "{} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            def.qualified()
        );
        let mut refusal = Self::about(403, "Forbidden", message, def, name);
        let causes = json!([
            { "reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace" }
        ]);
        if let Some(details) = refusal.details.as_mut().and_then(|it| it.as_object_mut()) {
            details.insert("causes".into(), causes);
        }
        refusal
    }

    /// Refuses a request that is forbidden for everyone, with this reason.
    pub(crate) fn forbidden(def: &ResourceDef, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", def.qualified());
        Self::about(403, "Forbidden", message, def, name)
    }

    /// Reports a conflict with another writer, with this reason.
    pub(crate) fn conflict_because(def: &ResourceDef, name: &str, why: &str) -> Self {
        let what = format!("{} {name:?}", def.qualified());
        let message = format!("Operation cannot be fulfilled on {what}: {why}");
        Self::about(409, "Conflict", message, def, name)
    }

    /// Refuses the use of a part of Kubernetes that this server does not have.
    pub(crate) fn not_implemented(what: &str) -> Self {
        let message = format!("{what} is not served here: nothing runs in this cluster");
        Self::general(501, "NotImplemented", message)
    }

    /// Refuses a deletion whose preconditions are not met.
    pub(crate) fn precondition(def: &ResourceDef, name: &str, why: &str) -> Self {
        // The real server names the kind instead of the resource here.
        let kind = join(&def.kind, &def.group);
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        let mut refusal = Self::about(409, "Conflict", message, def, name);
        if let Some(details) = refusal.details.as_mut().and_then(|it| it.as_object_mut()) {
            details.insert("kind".into(), def.kind.clone().into());
        }
        refusal
    }

    /// Refuses a version that does not exist yet.
    pub(crate) fn too_new(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let causes = json!([
            { "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }
        ]);
        let details = json!({ "causes": causes, "retryAfterSeconds": 1 });
        Self {
            details: Some(details.into()),
            ..Self::general(504, "Timeout", format!("Timeout: {message}"))
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::general(400, "BadRequest", message)
    }

    /// Refuses an object of the kind with a value of a wrong type.
    pub(crate) fn undecodable(kind: &str, version: &str, why: &str) -> Self {
        let text = format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}");
        Self::bad_request(text)
    }

    /// Returns the reason of an undecodable body; `None` for other refusals.
    pub(crate) fn undecodable_why(&self) -> Option<&str> {
        Some(self.message.split_once(" cannot be handled as a ")?.1.split_once(": ")?.1)
    }

    /// Refuses a patch whose result is not an object of the kind.
    pub(crate) fn unfit_patch(why: &str) -> Self {
        let message = format!("the patched object is invalid: {why}");
        let cause = json!({ "reason": "FieldValueInvalid", "message": why, "field": "patch" });
        Self {
            details: Some(json!({ "causes": [cause] }).into()),
            ..Self::general(422, "Invalid", message)
        }
    }

    /// Reports an internal error.
    pub(crate) fn internal(cause: &str) -> Self {
        let message = format!("Internal error occurred: {cause}");
        let details = json!({ "causes": [{ "message": cause }] });
        Self { details: Some(details.into()), ..Self::general(500, "InternalError", message) }
    }

    /// Reports an error that the real server does not classify: it has no reason.
    pub(crate) fn unclassed(message: impl Into<String>) -> Self {
        Self::general(500, "", message)
    }

    /// Refuses an unknown resource in a group of the server itself.
    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: Some(json!({}).into()), ..Self::general(404, "NotFound", message) }
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: Some(json!({}).into()), ..Self::general(405, "MethodNotAllowed", message) }
    }

    /// Refuses a new object of a CRD that is being deleted.
    pub(crate) fn terminating_definition(def: &ResourceDef, name: &str) -> Self {
        let why = "create not allowed while custom resource definition is terminating";
        Self::forbidden(def, name, why)
    }

    /// Refuses a write that names the uid of another object.
    pub(crate) fn other_uid(def: &ResourceDef, (namespace, name): (&str, &str), why: &str) -> Self {
        let place = [def.storage_prefix().as_str(), namespace, name]
            .iter()
            .filter(|it| !it.is_empty())
            .fold("/registry".to_owned(), |path, it| format!("{path}/{it}"));
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: {why}"
        );
        Self::conflict_because(def, name, &why)
    }

    /// Refuses a method for a custom resource; `verb` is empty for methods that Kubernetes does not have.
    pub(crate) fn not_supported(def: &ResourceDef, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", def.qualified());
        Self::about(405, "MethodNotAllowed", message, def, "")
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::general(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large() -> Self {
        let message = "Request entity too large: limit is 3145728";
        Self::general(413, "RequestEntityTooLarge", message)
    }

    /// Refuses a JSON patch with more operations than the real server accepts.
    pub(crate) fn too_many_operations(count: usize, most: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {count}"
        );
        Self::general(413, "RequestEntityTooLarge", message)
    }

    /// Refuses a patch type that the native kind does not support. The router of the real server refuses it, so the message
    /// differs.
    pub(crate) fn unsupported_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self {
            details: Some(json!({}).into()),
            ..Self::general(415, "UnsupportedMediaType", message)
        }
    }

    /// Refuses a watch of changes that have been dropped.
    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::general(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// Refuses an expired continue token.
    pub(crate) fn continue_too_old() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::general(410, "Expired", message)
    }

    /// Reports the denial of a webhook.
    pub(crate) fn denied(code: u16, reason: &str, message: String) -> Self {
        Self { code, reason: reason.to_owned().into(), message, details: None }
    }

    /// Refuses an eviction that a disruption budget does not allow now.
    pub(crate) fn disruption(why: &str, retry_after_seconds: Option<u32>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": why }] });
        if let (Some(seconds), Some(fields)) = (retry_after_seconds, details.as_object_mut()) {
            fields.insert("retryAfterSeconds".into(), seconds.into());
        }
        Self { details: Some(details.into()), ..Self::general(429, "TooManyRequests", message) }
    }

    /// Makes the error that a fault injects. 422 looks like the error of a JSON patch, because other refusals with this status name
    /// fields.
    pub(crate) fn injected(
        code: u16,
        retry_after_seconds: Option<u32>,
        name: Option<&str>,
    ) -> Self {
        let reason = match code {
            422 => return Self::unprocessable(),
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "Unknown",
        };
        let name = name.filter(|_| code == 404).map(|it| json!({ "name": it }).into());
        let pause = retry_after_seconds.map(|it| json!({ "retryAfterSeconds": it }).into());
        let details = pause.or(name);
        Self { details, ..Self::general(code, reason, format!("injected failure {code}")) }
    }

    /// Returns the `Status` object, the body of the response.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        });
        if let Some(fields) = status.as_object_mut() {
            if let Some(details) = &self.details {
                fields.insert("details".into(), (**details).clone());
            }
            if self.reason.is_empty() {
                fields.shift_remove("reason");
            }
            fields.insert("code".into(), self.code.into());
        }
        status
    }

    fn general(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None }
    }

    fn about(
        code: u16,
        reason: &'static str,
        message: String,
        def: &ResourceDef,
        name: &str,
    ) -> Self {
        let mut details = json!({ "name": name, "group": def.group, "kind": def.plural });
        if let Some(fields) = details.as_object_mut() {
            fields.retain(|_, value| value != "");
        }
        Self { details: Some(details.into()), ..Self::general(code, reason, message) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Returns `name.group`, or only the name in the core group.
pub(crate) fn join(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
