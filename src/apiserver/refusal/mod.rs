//! Negative answers: Kubernetes `Status` objects, worded as the real server words them.

pub(crate) mod go;
pub(crate) mod path;
mod problem;

use std::{borrow::Cow, collections::BTreeSet, fmt};

use serde_json::{Value, json};

pub(crate) use self::problem::{Problem, ProblemKind};
use crate::resource::ResourceDef;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable word for it.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// Which object it is about; the real server leaves it out of general errors.
    ///
    /// Boxed: every answer of the server is as big as its errors.
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

    /// The writer has seen an older version than the stored one.
    pub(crate) fn conflict(def: &ResourceDef, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: the object has been modified; \
             please apply your changes to the latest version and try again",
            def.qualified()
        );
        Self::about(409, "Conflict", message, def, name)
    }

    /// A body is not acceptable, for these reasons. `kind` is the qualified kind, as in `Deployment.apps`.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, problems: &[Problem]) -> Self {
        let mut told = BTreeSet::new();
        let mut texts: Vec<String> =
            problems.iter().map(|it| format!("{}: {}", it.field, it.text())).collect();
        texts.retain(|it| told.insert(it.clone()));
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

    /// A JSON patch that cannot be applied, a failed `test` included.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: Some(json!({}).into()), ..Self::general(422, "Invalid", message) }
    }

    /// Nothing new is created in a namespace that goes away.
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

    /// Nobody may do this, for this reason.
    pub(crate) fn forbidden(def: &ResourceDef, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", def.qualified());
        Self::about(403, "Forbidden", message, def, name)
    }

    /// Somebody else was faster, for this reason.
    pub(crate) fn conflict_because(def: &ResourceDef, name: &str, why: &str) -> Self {
        let what = format!("{} {name:?}", def.qualified());
        let message = format!("Operation cannot be fulfilled on {what}: {why}");
        Self::about(409, "Conflict", message, def, name)
    }

    /// A part of Kubernetes that this server does not have.
    pub(crate) fn not_implemented(what: &str) -> Self {
        let message = format!("{what} is not served here: nothing runs in this cluster");
        Self::general(501, "NotImplemented", message)
    }

    /// A deletion wants another object than the one that is there.
    pub(crate) fn precondition(def: &ResourceDef, name: &str, why: &str) -> Self {
        // Here the real server names the kind instead of the resource.
        let kind = join(&def.kind, &def.group);
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        let mut refusal = Self::about(409, "Conflict", message, def, name);
        if let Some(details) = refusal.details.as_mut().and_then(|it| it.as_object_mut()) {
            details.insert("kind".into(), def.kind.clone().into());
        }
        refusal
    }

    /// A version is asked for that does not exist yet.
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

    /// A body that is an object, but not of this kind: a value has a wrong type.
    pub(crate) fn undecodable(kind: &str, version: &str, why: &str) -> Self {
        let text = format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}");
        Self::bad_request(text)
    }

    /// Why a body cannot be decoded, if that is what is wrong.
    pub(crate) fn undecodable_why(&self) -> Option<&str> {
        Some(self.message.split_once(" cannot be handled as a ")?.1.split_once(": ")?.1)
    }

    /// A patch whose result is not an object of the kind.
    pub(crate) fn unfit_patch(why: &str) -> Self {
        let message = format!("the patched object is invalid: {why}");
        let cause = json!({ "reason": "FieldValueInvalid", "message": why, "field": "patch" });
        Self {
            details: Some(json!({ "causes": [cause] }).into()),
            ..Self::general(422, "Invalid", message)
        }
    }

    /// The server itself fails.
    pub(crate) fn internal(cause: &str) -> Self {
        let message = format!("Internal error occurred: {cause}");
        let details = json!({ "causes": [{ "message": cause }] });
        Self { details: Some(details.into()), ..Self::general(500, "InternalError", message) }
    }

    /// An error that the real server does not class: no reason is given.
    pub(crate) fn unclassed(message: impl Into<String>) -> Self {
        Self::general(500, "", message)
    }

    /// No such resource in a group of the server itself.
    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: Some(json!({}).into()), ..Self::general(404, "NotFound", message) }
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: Some(json!({}).into()), ..Self::general(405, "MethodNotAllowed", message) }
    }

    /// Nothing is created of a kind whose definition goes away.
    pub(crate) fn terminating_definition(def: &ResourceDef, name: &str) -> Self {
        let why = "create not allowed while custom resource definition is terminating";
        Self::forbidden(def, name, why)
    }

    /// The object is not the one that the writer means.
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

    /// Custom resources say what is not done with them; `verb` is empty for methods that mean nothing to Kubernetes.
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

    /// A JSON patch with more operations than the real server takes.
    pub(crate) fn too_many_operations(count: usize, most: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {count}"
        );
        Self::general(413, "RequestEntityTooLarge", message)
    }

    /// A native kind asked with a type of patch that it does not know; these are answered a level below.
    pub(crate) fn unsupported_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self {
            details: Some(json!({}).into()),
            ..Self::general(415, "UnsupportedMediaType", message)
        }
    }

    /// A watch asks for changes that are not remembered any more.
    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::general(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// The next page of a list is asked for too late.
    pub(crate) fn continue_too_old() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::general(410, "Expired", message)
    }

    /// A webhook does not want it.
    pub(crate) fn denied(code: u16, reason: &str, message: String) -> Self {
        Self { code, reason: reason.to_owned().into(), message, details: None }
    }

    /// An eviction that a disruption budget does not allow now.
    pub(crate) fn disruption(why: &str, retry_after_seconds: Option<u32>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": why }] });
        if let (Some(seconds), Some(fields)) = (retry_after_seconds, details.as_object_mut()) {
            fields.insert("retryAfterSeconds".into(), seconds.into());
        }
        Self { details: Some(details.into()), ..Self::general(429, "TooManyRequests", message) }
    }

    /// A failure that a test asks for, whatever the request is. 422 is that of a JSON patch: what else is refused is known better.
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

    /// The body of the answer.
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

/// `name.group`, or only the name in the core group.
pub(crate) fn join(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
