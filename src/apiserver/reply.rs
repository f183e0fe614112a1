//! Responses of the server, and their rendering as HTTP.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{
    HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY, WARNING,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::{
    discovery::document::CompressedDocument,
    refusal::Refusal,
    request::{
        self,
        accept::{Media, ResponseEncoding},
        yaml,
    },
    resource::kind::VersionedKind,
    service::ResponseBody,
    store::stored::Stored,
    streaming::upgrade::Upgrade,
    verbs::watch::ClientWatch,
};

const JSON: &str = "application/json";
/// The content type of short texts of the server itself.
const PLAIN: &str = "text/plain; charset=utf-8";

/// A response before it is rendered in the form that the client accepts.
pub(crate) enum Reply {
    /// A stored object in the version that was requested.
    Object { status: u16, view: VersionedKind, object: Arc<Stored> },
    /// A document, a status, or an object that is not stored.
    Document(u16, Value),
    /// A list of objects of one resource.
    List(List),
    /// Another text, with its content type.
    Text(u16, &'static str, Bytes),
    /// Plain text, with the header that keeps browsers from guessing another type.
    Plain(u16, Bytes),
    /// A document that clients cache: not sent again if they have it, compressed if they accept that.
    Tagged { document: CompressedDocument, known: bool, packed: bool },
    /// A text that is still being written, with its content type: logs.
    Stream(&'static str, BoxStream<'static, Bytes>),
    /// A switch to another protocol than HTTP.
    Upgrade(Box<Upgrade>),
    /// Watch events until the client or the server ends the watch.
    Watch(Box<ClientWatch>),
}

/// Objects of one resource, or a page of them.
pub(crate) struct List {
    pub(crate) view: VersionedKind,
    pub(crate) revision: u64,
    /// The continue token of the next page.
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
    pub(crate) items: Vec<Arc<Stored>>,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Document(refusal.code, refusal.to_json())
    }
}

impl Reply {
    /// Makes the 404 for a path that no handler of the server serves. The real server sends it in plain text, too.
    pub(crate) fn unknown_path() -> Self {
        Self::Plain(404, Bytes::from_static(b"404 page not found\n"))
    }

    /// Returns the HTTP status code.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Object { status, .. }
            | Self::Document(status, _)
            | Self::Text(status, ..)
            | Self::Plain(status, _) => *status,
            Self::Tagged { known: true, .. } => 304,
            Self::Upgrade(_) => 101,
            Self::List(_) | Self::Watch(_) | Self::Stream(..) | Self::Tagged { .. } => 200,
        }
    }

    /// Returns the resource version of the object or the list in the response.
    pub(crate) fn version(&self) -> Option<String> {
        match self {
            Self::Object { object, .. } => Some(object.head.revision.to_string()),
            Self::Document(_, body) => {
                body.pointer("/metadata/resourceVersion")?.as_str().map(String::from)
            }
            Self::List(list) => Some(list.revision.to_string()),
            Self::Text(..)
            | Self::Plain(..)
            | Self::Watch(_)
            | Self::Stream(..)
            | Self::Upgrade(_)
            | Self::Tagged { .. } => None,
        }
    }

    /// Renders the response in the negotiated form, with `Warning` headers.
    pub(crate) fn render(
        self,
        form: ResponseEncoding,
        warnings: &[String],
    ) -> Response<ResponseBody> {
        let whole = |body: Vec<u8>| {
            let body = Full::new(Bytes::from(formed(body, form)));
            (form.media.content_type(), body.boxed_unsync())
        };
        let status = self.status();
        let plain = matches!(self, Self::Plain(..));
        let mut tag = None;
        let mut encoding = None;
        let mut upgrade = None;
        let retry_after = self.retry_after_seconds();
        let (kind, body) = match self {
            Self::Object { view, object, .. } => whole(view.text(&object)),
            Self::Document(_, body) => whole(body.to_string().into_bytes()),
            Self::List(list) => whole(list.text()),
            Self::Text(_, kind, body) => (kind, Full::new(body).boxed_unsync()),
            Self::Plain(_, body) => (PLAIN, Full::new(body).boxed_unsync()),
            Self::Tagged { document, known, packed } => {
                tag = HeaderValue::from_str(&document.etag).ok();
                let body = match (known, packed) {
                    (true, _) => Bytes::new(),
                    (false, true) => {
                        encoding = Some(HeaderValue::from_static("gzip"));
                        document.packed()
                    }
                    (false, false) => document.body(),
                };
                (document.content_type, Full::new(body).boxed_unsync())
            }
            Self::Stream(kind, parts) => {
                let frames = parts.map(|it| Ok(Frame::data(it)));
                (kind, StreamBody::new(frames).boxed_unsync())
            }
            Self::Upgrade(it) => {
                upgrade = Some(it);
                (PLAIN, Empty::new().boxed_unsync())
            }
            Self::Watch(watch) => (JSON, StreamBody::new(watch.frames()).boxed_unsync()),
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let cached = if kind.contains("apidiscovery") { "public" } else { "no-cache, private" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if plain {
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        if let Some(tag) = tag {
            headers.insert(ETAG, tag);
            headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        }
        if let Some(encoding) = encoding {
            headers.insert(CONTENT_ENCODING, encoding);
        }
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(upgrade) = upgrade {
            upgrade.enter(&mut response);
            return response;
        }
        for warning in warnings {
            if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
                headers.append(WARNING, value);
            }
        }
        response
    }

    /// Returns the seconds for `Retry-After` from the details of a refusal.
    fn retry_after_seconds(&self) -> Option<u64> {
        let Self::Document(429 | 500.., body) = self else { return None };
        body.pointer("/details/retryAfterSeconds")?.as_u64()
    }
}

/// Converts JSON to the form that the client accepts.
fn formed(text: Vec<u8>, form: ResponseEncoding) -> Vec<u8> {
    let tree = |text: &[u8]| request::json::stored::<Value>(text).unwrap_or_default();
    match (form.media, form.pretty) {
        (Media::Yaml, _) => yaml::write(&tree(&text)).into_bytes(),
        (Media::Json, true) => serde_json::to_vec_pretty(&tree(&text)).unwrap_or(text),
        (Media::Json, false) => text,
    }
}

impl List {
    /// Returns the `metadata` of the list.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(fields) = metadata.as_object_mut() {
            if let Some(next) = &self.next {
                fields.insert("continue".into(), next.as_str().into());
            }
            if let Some(remaining) = self.remaining {
                fields.insert("remainingItemCount".into(), remaining.into());
            }
        }
        metadata
    }

    fn text(&self) -> Vec<u8> {
        let (view, def) = (&self.view, &self.view.kind.def);
        let size: usize = self.items.iter().map(|it| it.len() + 64).sum();
        let mut text = Vec::with_capacity(size + 256);
        let mut metadata = self.metadata();
        if let Some(fields) = metadata.as_object_mut().filter(|_| !def.native) {
            // Lists of custom resources have an empty `continue` on the last page.
            fields.entry("continue").or_insert_with(|| "".into());
        }
        let head = json!({
            "kind": format!("{}List", def.kind),
            "apiVersion": view.api_version,
            "metadata": metadata,
        });
        text.extend_from_slice(head.to_string().trim_end_matches('}').as_bytes());
        // The trim has also removed the closing brace of the metadata.
        text.extend_from_slice(br#"},"items":["#);
        // Items of native kinds have no `apiVersion` and `kind`.
        let named = (!def.native).then_some((view.api_version.as_str(), def.kind.as_str()));
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            if view.converts() {
                let mut tree = view.tree(item);
                if let Some(fields) = tree.as_object_mut().filter(|_| def.native) {
                    fields.retain(|name, _| name != "kind" && name != "apiVersion");
                }
                text.extend_from_slice(tree.to_string().as_bytes());
            } else {
                item.write(&mut text, named);
            }
        }
        text.extend_from_slice(b"]}");
        text
    }
}
