//! The failures of attempts, and the errors for the user. Pure, no requests are made here.

use std::{fmt, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use super::reason::{
    is_about_certificates, is_before_the_request, one_line, reason, reason_of_auth,
};
use crate::logic::{access::kube::StatusDetails, object::resource::Resource, replicas::leadership};
use crate::ports::{ApiError, ErrorClass};

/// Maximum number of characters of a text that is not from Kubernetes, as in Kopf.
const FOREIGN_TEXT_CHARS: usize = 256;

/// Maximum number of characters of a reason in a message: one log line, not a page.
const REASON_CHARS: usize = 1024;

/// The words of every server for a JSON patch that cannot be applied, including its `test`s, and for no other 422: errors of schemas and
/// rules name the fields, those of webhooks the webhook.
const UNAPPLICABLE: &str = "the server rejected our request due to an error in our request";

/// The purpose of a request, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action<'a> {
    /// Reads a discovery document.
    Discover(&'a str),
    /// Reads or writes objects of a resource.
    Use {
        /// The verb, as in RBAC rules.
        verb: &'static str,
        /// The resource that the URL names.
        resource: &'a Resource,
        /// The namespace; `None`: the whole cluster.
        namespace: Option<&'a str>,
        /// The object; `None`: the collection.
        name: Option<&'a str>,
        /// The subresource, such as `status`; `None`: the object itself.
        subresource: Option<&'a str>,
    },
}

/// The reason why an attempt failed.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The server has responded with an error.
    Answer(ErrorResponse),
    /// There was no connection: the server has certainly not received the request.
    Unreachable(String),
    /// The connection broke before the response: the server may have received the request.
    Disconnected(String),
    /// There was no response in time.
    Timeout(Duration),
    /// The certificate of the server, or that of the client, is not accepted.
    Untrusted(String),
    /// No credentials are available: an exec plugin or a token file failed.
    Credentials(String),
    /// The request succeeded, but the response could not be read completely.
    Payload(String),
    /// The response does not conform to the API.
    Malformed(String),
    /// The request itself is invalid.
    Unsendable(String),
}

/// A response with an error status, as far as messages and retries need it.
#[derive(Debug, Default)]
pub(super) struct ErrorResponse {
    /// The status of the HTTP response.
    pub(super) status: u16,
    /// The message of the server; may be empty.
    pub(super) message: String,
    /// The header `Retry-After`, unparsed.
    pub(super) retry_after: Option<String>,
    /// Further details; `None` if the response is not a `Status`.
    pub(super) status_details: Option<Box<StatusDetails>>,
}

/// The relevant fields of a Kubernetes `Status` object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    kind: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    /// The HTTP status, repeated in the body.
    pub(super) code: Option<u16>,
    details: Option<Value>,
}

impl ErrorResponse {
    /// Reads the body of a response. JSON that is not a `Status` is ignored; other texts are truncated.
    pub(super) fn read(status: u16, retry_after: Option<String>, body: &[u8]) -> Self {
        let mut answer = ErrorResponse { status, retry_after, ..ErrorResponse::default() };
        match serde_json::from_slice::<Status>(body) {
            Ok(mut it) if it.kind.as_deref() == Some("Status") => {
                let reason = it.reason.clone().unwrap_or_default();
                let details = it.details.take().unwrap_or_default();
                answer.status_details = Some(Box::new(StatusDetails { reason, details }));
                answer.message = it.text();
            }
            Ok(_) => {}
            Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() => {}
            Err(_) => answer.message = one_line(&String::from_utf8_lossy(body), FOREIGN_TEXT_CHARS),
        }
        answer
    }
}

impl ErrorResponse {
    /// Returns whether the server requests a retry: then it has not executed the request.
    pub(super) fn asks_to_retry(&self) -> bool {
        self.retry_after.is_some() || self.retry_after_seconds().is_some()
    }

    /// Returns whether an applied object does not fit the schema of its kind, which API servers report with the status 500. Retries cannot
    /// succeed.
    pub(super) fn is_mistyped(&self) -> bool {
        self.status == 500 && self.message.contains(UNTYPED)
    }

    /// Returns `details.retryAfterSeconds` of the status object.
    pub(super) fn retry_after_seconds(&self) -> Option<f64> {
        self.status_details.as_ref()?.details.get("retryAfterSeconds")?.as_f64()
    }
}

impl Status {
    /// Returns its message in one line; may be empty.
    pub(super) fn text(self) -> String {
        let text = self.message.filter(|it| !it.is_empty()).or(self.reason).unwrap_or_default();
        one_line(&text, REASON_CHARS)
    }
}

impl RequestFailure {
    /// Classifies an error of the client.
    pub(super) fn of_client(error: &kube::Error) -> Self {
        let auth = if let kube::Error::Service(inner) = error {
            inner.downcast_ref()
        } else if let kube::Error::Auth(auth) = error {
            Some(auth)
        } else {
            None
        };
        if let Some(auth) = auth {
            return RequestFailure::Credentials(reason_of_auth(auth));
        }
        let reason = reason(error);
        if is_about_certificates(error) {
            RequestFailure::Untrusted(reason)
        } else if is_before_the_request(error) {
            RequestFailure::Unreachable(reason)
        } else {
            RequestFailure::Disconnected(reason)
        }
    }

    /// Returns whether the server rejects the credentials.
    pub(super) fn is_rejection(&self) -> bool {
        matches!(self, RequestFailure::Answer(ErrorResponse { status: 401, .. }))
    }

    /// Returns whether the server has responded.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, RequestFailure::Answer(_))
    }

    /// Returns a label for metrics.
    pub(super) fn label(&self) -> String {
        let word = match self {
            RequestFailure::Answer(answer) => return answer.status.to_string(),
            RequestFailure::Unreachable(_) => "unreachable",
            RequestFailure::Disconnected(_) => "disconnected",
            RequestFailure::Timeout(_) => "timeout",
            RequestFailure::Untrusted(_) => "untrusted",
            RequestFailure::Credentials(_) => "credentials",
            RequestFailure::Payload(_) => "broken",
            RequestFailure::Malformed(_) => "malformed",
            RequestFailure::Unsendable(_) => "unsendable",
        };
        word.to_owned()
    }

    /// Returns the final error for the caller. `server` is the address, or empty if unknown.
    pub(super) fn into_error(self, action: &Action<'_>, server: &str) -> ApiError {
        let class = self.class();
        let hint = self.hint(action);
        let status = match &self {
            RequestFailure::Answer(answer) => Some(answer.status),
            RequestFailure::Unreachable(_)
            | RequestFailure::Disconnected(_)
            | RequestFailure::Timeout(_)
            | RequestFailure::Untrusted(_)
            | RequestFailure::Credentials(_)
            | RequestFailure::Payload(_)
            | RequestFailure::Malformed(_)
            | RequestFailure::Unsendable(_) => None,
        };
        let at = if status.is_some() || server.is_empty() {
            String::new()
        } else {
            format!(" at {server}")
        };
        let message = format!("cannot {action}{at}: {self}");
        let answer = match self {
            RequestFailure::Answer(answer) => answer.status_details,
            RequestFailure::Unreachable(_)
            | RequestFailure::Disconnected(_)
            | RequestFailure::Timeout(_)
            | RequestFailure::Untrusted(_)
            | RequestFailure::Credentials(_)
            | RequestFailure::Payload(_)
            | RequestFailure::Malformed(_)
            | RequestFailure::Unsendable(_) => None,
        };
        ApiError { class, status, message, hint, answer }
    }

    fn class(&self) -> ErrorClass {
        match self {
            RequestFailure::Answer(answer) => match answer.status {
                401 | 403 => ErrorClass::Denied,
                404 => ErrorClass::Missing,
                409 => ErrorClass::Conflict,
                410 => ErrorClass::Expired,
                422 if answer.message == UNAPPLICABLE => ErrorClass::Outdated,
                422 => ErrorClass::Invalid,
                _ if answer.is_mistyped() => ErrorClass::Invalid,
                429 | 500..=599 => ErrorClass::Retry,
                _ => ErrorClass::Fatal,
            },
            RequestFailure::Unreachable(_)
            | RequestFailure::Disconnected(_)
            | RequestFailure::Timeout(_)
            | RequestFailure::Payload(_) => ErrorClass::Retry,
            RequestFailure::Credentials(_) => ErrorClass::Denied,
            RequestFailure::Untrusted(_)
            | RequestFailure::Malformed(_)
            | RequestFailure::Unsendable(_) => ErrorClass::Fatal,
        }
    }

    fn hint(&self, action: &Action<'_>) -> Option<String> {
        let hint = match self {
            RequestFailure::Answer(ErrorResponse { status: 401, .. }) => {
                "the credentials are expired or wrong: log in again, or check the user of the current context"
            }
            RequestFailure::Answer(ErrorResponse { status: 403, message, .. }) => {
                return action.rule(message);
            }
            RequestFailure::Answer(ErrorResponse { message, .. }) if message.contains(NO_LIST) => {
                "found an empty map instead of a list: in Lua, write an empty list as kopf.array{}, because {} is an object"
            }
            RequestFailure::Answer(ErrorResponse { message, .. })
                if message.contains(ANNOTATIONS_FULL) =>
            {
                "let the operator store its state in the status instead: settings.persistence.progress_storage = \
                 kopf.StatusProgressStorage(), and the same for diffbase_storage"
            }
            RequestFailure::Unreachable(_) | RequestFailure::Disconnected(_) => {
                "check that the cluster is running and that the `server` of the current context is correct: `kubectl version`"
            }
            RequestFailure::Timeout(_) => {
                "the server is slow or a proxy holds the connection; `settings.networking.request_timeout` is the limit"
            }
            RequestFailure::Untrusted(_) => {
                "check `certificate-authority` (and the client certificate, if there is one) of the current context"
            }
            RequestFailure::Credentials(_) => {
                "run the exec plugin of the current context by hand, or check its token file"
            }
            RequestFailure::Answer(_)
            | RequestFailure::Payload(_)
            | RequestFailure::Malformed(_)
            | RequestFailure::Unsendable(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// The beginning of API servers' message for an applied object that does not fit its schema.
const UNTYPED: &str = "failed to create typed patch";
/// API servers' message for annotations of more than 256 KiB in total, the beginning that all versions share.
const ANNOTATIONS_FULL: &str = "metadata.annotations: Too long";
/// API servers' message for an empty map instead of a list.
const NO_LIST: &str = "expected list, got &{map[]}";

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestFailure::Answer(ErrorResponse { status, message, .. }) => {
                let title = http::StatusCode::from_u16(*status).ok();
                let title = title.and_then(|it| it.canonical_reason()).unwrap_or("unknown status");
                write!(f, "{status} {title}")?;
                if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
            }
            RequestFailure::Timeout(limit) => {
                write!(f, "no response within {} s", limit.as_secs_f64())
            }
            RequestFailure::Payload(reason) => write!(f, "the response was interrupted: {reason}"),
            RequestFailure::Malformed(reason) => write!(f, "invalid response: {reason}"),
            RequestFailure::Untrusted(reason) => write!(f, "no trusted connection: {reason}"),
            RequestFailure::Credentials(reason) => write!(f, "no credentials: {reason}"),
            RequestFailure::Unreachable(reason)
            | RequestFailure::Disconnected(reason)
            | RequestFailure::Unsendable(reason) => f.write_str(reason),
        }
    }
}

impl Action<'_> {
    /// Returns the verb, as in RBAC rules; `discover` for discovery.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Action::Discover(_) => "discover",
            Action::Use { verb, .. } => verb,
        }
    }

    /// Returns whether the request concerns leases.
    pub(super) fn is_about_leases(&self) -> bool {
        matches!(self, Action::Use { resource, .. } if leadership::is_lease(resource))
    }

    /// Returns the RBAC rule that would allow the request; `None` if permissions would not help.
    fn rule(&self, message: &str) -> Option<String> {
        let Action::Use { verb, resource, namespace, subresource, .. } = self else {
            return None;
        };
        let Resource { group, plural, .. } = resource;
        let part = subresource.map(|it| format!("/{it}")).unwrap_or_default();
        let asked = Right { verb, resource: format!("{plural}{part}"), group };
        let Right { verb, resource, group } = asked.lacking(message)?;
        let role = namespace.map_or_else(
            || "ClusterRole (or serve single namespaces)".into(),
            |it| format!("ClusterRole, or in a Role in the namespace '{it}'"),
        );
        Some(format!(
            "grant it to the operator in a {role}: {{apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [\"{verb}\"]}}"
        ))
    }
}

/// The permission of one RBAC rule.
struct Right<'a> {
    verb: &'a str,
    /// The plural, with the subresource if any: `pods/status`.
    resource: String,
    group: &'a str,
}

impl<'a> Right<'a> {
    /// Returns the missing permission if the server denies a request that needs this one; `None` if it denies the request for
    /// another reason: quotas and policies also respond with 403.
    ///
    /// The missing permission may be another one: a `patch` that would create an object needs the permission to create it.
    fn lacking(self, message: &'a str) -> Option<Self> {
        let Some((_, why)) = message.split_once(" is forbidden:") else { return Some(self) };
        let why = why.trim();
        if why.is_empty() || why.starts_with("RBAC: ") {
            // Old servers give no details about an apply that would create an object.
            let verb = if self.verb == "patch" { "create" } else { self.verb };
            return Some(Right { verb, ..self });
        }
        why.starts_with("User ").then(|| Right::named(why).unwrap_or(self))
    }

    /// Reads `User "…" cannot VERB resource "RESOURCE" in API group "GROUP" …`.
    fn named(why: &'a str) -> Option<Self> {
        let (_, rest) = why.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once('"')?;
        let (group, _) = rest.strip_prefix(" in API group \"")?.split_once('"')?;
        Some(Right { verb, resource: resource.to_owned(), group })
    }
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Action::Use { verb, resource, namespace, name, subresource } = self else {
            let Action::Discover(path) = self else { return Ok(()) };
            return write!(f, "discover resources ({path})");
        };
        write!(f, "{verb} {resource}")?;
        if let Some(subresource) = subresource {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = name {
            write!(f, " '{name}'")?;
        }
        match (namespace, name) {
            (Some(namespace), _) => write!(f, " in '{namespace}'"),
            (None, Some(_)) => Ok(()),
            (None, None) => f.write_str(" cluster-wide"),
        }
    }
}
