//! Applies objects from files to the embedded server, with server-side apply, so that fields of other writers are kept.

use bytes::Bytes;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value};
use tower::ServiceExt as _;

use super::documents::{FileObject, NAMESPACE, text};
use crate::cli::report::Report;
use kopf_apiserver::ApiServer;

/// The field manager for fields from files.
const MANAGER: &str = "kopf-dev";
/// Fields that only servers set. Files that were saved from a cluster contain them, but they are not valid for another object.
const SERVER_FIELDS: [&str; 7] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Sends requests to the embedded server, without a socket.
#[derive(Clone, Debug)]
pub(super) struct Api(ApiServer);

/// The result of applying an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppliedObject {
    /// The name, as `kubectl` shows it.
    pub(super) name: String,
    pub(super) change: ApplyResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyResult {
    Created,
    Configured,
    Unchanged,
}

/// The reason why an object was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{place}: unknown kind '{kind}' in {api_version}")]
    UnknownKind { place: String, kind: String, api_version: String },
    #[error("{place}: {kind} '{name}' is rejected: {message}")]
    Refused { place: String, kind: String, name: String, message: String },
}

impl Error {
    /// Returns what to do next, if known.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Error::UnknownKind { .. } => Some(
                "add its CRD with --crd FILE, or a handler that names it; check apiVersion and kind",
            ),
            Error::Refused { .. } => None,
        }
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Report {
        let report = Report::failure(error.to_string());
        match error.hint() {
            Some(hint) => report.with_hint(hint),
            None => report,
        }
    }
}

impl ApplyResult {
    /// Returns the word that `kubectl apply` uses.
    pub(super) fn word(self) -> &'static str {
        match self {
            ApplyResult::Created => "created",
            ApplyResult::Configured => "configured",
            ApplyResult::Unchanged => "unchanged",
        }
    }
}

/// The status and the body of a response.
type StatusAndBody = (u16, Value);

impl Api {
    pub(super) fn new(server: ApiServer) -> Self {
        Api(server)
    }

    /// Applies a document to the server.
    pub(super) async fn apply(&self, document: &FileObject) -> Result<AppliedObject, Error> {
        let mut object = document.object.clone();
        let (place, name) = self.locate(document).await?;
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            place.enter(meta);
        }
        let version =
            |(status, body): &StatusAndBody| (*status < 300).then(|| revision(body).to_owned());
        let before = version(&self.send(Method::GET, &place.url, None).await);
        let answer = self.write(&place.url, &object).await;
        let Some(after) = version(&answer) else {
            return Err(Error::Refused {
                place: document.place.clone(),
                kind: text(&object, "/kind").to_owned(),
                name: text(&object, "/metadata/name").to_owned(),
                message: text(&answer.1, "/message").to_owned(),
            });
        };
        let change = match before {
            None => ApplyResult::Created,
            Some(before) if before == after => ApplyResult::Unchanged,
            Some(_) => ApplyResult::Configured,
        };
        Ok(AppliedObject { name, change })
    }

    async fn write(&self, url: &str, object: &Value) -> StatusAndBody {
        let url = format!("{url}?fieldManager={MANAGER}&force=true");
        let content = ("application/apply-patch+yaml", object.to_string());
        self.send(Method::PATCH, &url, Some(content)).await
    }

    /// Returns the place of the object of a document, and its name as shown.
    async fn locate(&self, document: &FileObject) -> Result<(Location, String), Error> {
        let object = &document.object;
        let (kind, api_version) = (text(object, "/kind"), text(object, "/apiVersion"));
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let root = format!("/{root}/{}", escaped(api_version, "/"));
        let (_status, list) = self.send(Method::GET, &root, None).await;
        let resources = list.get("resources").and_then(Value::as_array);
        // Subresources have kinds too, such as `Scale`.
        let is_it = |it: &&Value| text(it, "/kind") == kind && !text(it, "/name").contains('/');
        let found = resources.and_then(|it| it.iter().find(is_it));
        let Some(found) = found else {
            return Err(Error::UnknownKind {
                place: document.place.clone(),
                kind: kind.to_owned(),
                api_version: api_version.to_owned(),
            });
        };
        let given = Some(text(object, "/metadata/namespace")).filter(|it| !it.is_empty());
        let namespaced = found.get("namespaced").and_then(Value::as_bool) == Some(true);
        let namespace = namespaced.then(|| given.unwrap_or(NAMESPACE).to_owned());
        let name = text(object, "/metadata/name");
        let middle = namespace.as_ref().map(|it| format!("/namespaces/{}", escaped(it, "")));
        let url = format!(
            "{root}{}/{}/{}",
            middle.unwrap_or_default(),
            text(found, "/name"),
            escaped(name, "")
        );
        let group = api_version.rsplit_once('/').map(|(group, _)| format!(".{group}"));
        let shown = format!("{}{}/{name}", kind.to_lowercase(), group.unwrap_or_default());
        Ok((Location { url, namespace }, shown))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        content: Option<(&str, String)>,
    ) -> StatusAndBody {
        let mut request = Request::builder().method(method).uri(url);
        if let Some((kind, _)) = &content {
            request = request.header(CONTENT_TYPE, *kind);
        }
        let body = content.map(|(_, text)| text).unwrap_or_default();
        let request = match request.body(Full::new(Bytes::from(body))) {
            Ok(request) => request,
            // The parts of the URL are escaped, so it can only be too long.
            Err(problem) => return (400, serde_json::json!({ "message": problem.to_string() })),
        };
        match self.0.clone().oneshot(request).await {
            Ok(response) => {
                let status = response.status().as_u16();
                match response.into_body().collect().await {
                    Ok(body) => {
                        (status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
                    }
                    Err(never) => match never {},
                }
            }
            Err(never) => match never {},
        }
    }
}

/// The place of an object on the server.
struct Location {
    url: String,
    /// The namespace; `None` for cluster-scoped objects.
    namespace: Option<String>,
}

impl Location {
    /// Adapts the metadata to this location.
    fn enter(&self, meta: &mut Map<String, Value>) {
        meta.retain(|key, _| !SERVER_FIELDS.contains(&key.as_str()));
        match &self.namespace {
            Some(namespace) => meta.insert("namespace".into(), namespace.as_str().into()),
            None => meta.shift_remove("namespace"),
        };
    }
}

fn revision(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Escapes a part of a path. Names in Kubernetes need no escaping, but files may contain any name.
fn escaped(part: &str, also: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || "-._~:".contains(letter) || also.contains(letter) {
            text.push(letter);
        } else {
            text.extend(format!("%{byte:02X}").chars());
        }
    }
    text
}
