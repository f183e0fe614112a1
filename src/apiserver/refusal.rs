//! Negative answers: Kubernetes `Status` objects, worded as the real server words them.

use std::fmt;

use serde_json::{Value, json};

use super::resource::ResourceDef;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable word for it.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Which object it is about; the real server leaves it out of general errors.
    pub details: Option<Value>,
}

/// What is wrong with a field; the text tells more.
pub(super) enum FieldProblem {
    Required(String),
    Invalid(String),
    Forbidden(String),
}

impl FieldProblem {
    fn words(&self) -> (&'static str, String) {
        match self {
            Self::Required(text) => ("FieldValueRequired", format!("Required value: {text}")),
            Self::Invalid(text) => ("FieldValueInvalid", format!("Invalid value: {text}")),
            Self::Forbidden(text) => ("FieldValueForbidden", format!("Forbidden: {text}")),
        }
    }
}

impl Refusal {
    pub(super) fn not_found(def: &ResourceDef, name: &str) -> Self {
        let message = format!("{} {name:?} not found", def.qualified());
        Self::about(404, "NotFound", message, def, name)
    }

    pub(super) fn already_exists(def: &ResourceDef, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", def.qualified());
        Self::about(409, "AlreadyExists", message, def, name)
    }

    /// The writer has seen an older version than the stored one.
    pub(super) fn conflict(def: &ResourceDef, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: the object has been modified; \
             please apply your changes to the latest version and try again",
            def.qualified()
        );
        Self::about(409, "Conflict", message, def, name)
    }

    /// One field is not acceptable.
    pub(super) fn invalid(
        def: &ResourceDef,
        name: &str,
        field: &str,
        problem: &FieldProblem,
    ) -> Self {
        let (reason, text) = problem.words();
        let kind = join(&def.kind, &def.group);
        let message = format!("{kind} {name:?} is invalid: {field}: {text}");
        let mut refusal = Self::about(422, "Invalid", message, def, name);
        let causes = json!([{ "reason": reason, "message": text, "field": field }]);
        if let Some(details) = refusal.details.as_mut().and_then(Value::as_object_mut) {
            details.insert("kind".into(), def.kind.as_str().into());
            details.insert("causes".into(), causes);
        }
        refusal
    }

    /// A replacement must say which version it replaces. Here the real server names the resource instead of the kind.
    pub(super) fn version_missing(def: &ResourceDef, name: &str) -> Self {
        let problem = FieldProblem::Invalid("0x0: must be specified for an update".into());
        let named = ResourceDef { kind: def.plural.clone(), ..def.clone() };
        Self::invalid(&named, name, "metadata.resourceVersion", &problem)
    }

    /// A JSON patch that cannot be applied, a failed `test` included.
    pub(super) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: Some(json!({})), ..Self::general(422, "Invalid", message) }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::general(400, "BadRequest", message)
    }

    /// No such resource in a group of the server itself.
    pub(super) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: Some(json!({})), ..Self::general(404, "NotFound", message) }
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: Some(json!({})), ..Self::general(405, "MethodNotAllowed", message) }
    }

    pub(super) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::general(415, "UnsupportedMediaType", message)
    }

    pub(super) fn too_large() -> Self {
        Self::general(413, "RequestEntityTooLarge", "limit is 3145728")
    }

    /// A watch asks for changes that are not remembered any more.
    pub(super) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::general(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// The next page of a list is asked for too late.
    pub(super) fn continue_too_old() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::general(410, "Expired", message)
    }

    /// A failure that a test asks for, whatever the request is.
    pub(super) fn injected(code: u16) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "Unknown",
        };
        Self::general(code, reason, format!("injected failure {code}"))
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
                fields.insert("details".into(), details.clone());
            }
            fields.insert("code".into(), self.code.into());
        }
        status
    }

    fn general(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
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
        Self { details: Some(details), ..Self::general(code, reason, message) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// `name.group`, or only the name in the core group.
pub(super) fn join(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
