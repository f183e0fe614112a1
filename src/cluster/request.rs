//! One request to the API server: what it asks for, its time limit, and whether it may be repeated.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use kube::client::Body;
use serde::Deserialize;

use super::{
    failure::{Action, RequestFailure},
    fence::{Fence, FencedBody},
    limits::RequestOrigin,
};
use crate::settings::{NetworkingSettings, REQUEST_TIMEOUT};

/// Maximum time of one attempt of a request that is neither a list nor a watch, and of the start of a watch; unless
/// `settings.networking.request_timeout` is not its default.
pub(super) const SINGLE_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The content type of JSON patches.
const JSON_PATCH: &str = "application/json-patch+json";

/// The default media type of responses.
pub(super) const JSON: &str = "application/json";

/// The user agent of the operator.
const USER_AGENT: &str = concat!("kopf/", env!("CARGO_PKG_VERSION"));

/// One request, which can be sent any number of times.
#[derive(Debug)]
pub(super) struct KubeRequest<'a> {
    /// Whether the operator or a script sends it, which decides about its limits.
    pub(super) of: RequestOrigin,
    /// The HTTP method, which also decides whether it may be repeated.
    pub(super) method: Method,
    /// The path and the query, without the server.
    pub(super) url: String,
    /// The media types of the response.
    pub(super) accept: &'static str,
    /// The body and its content type.
    pub(super) content: Option<(&'static str, Bytes)>,
    /// The purpose of the request, for errors and hints.
    pub(super) action: Action<'a>,
    /// The key and the protocols of a WebSocket, if the connection changes to one.
    pub(super) websocket: Option<(&'a str, &'static str)>,
}

impl<'a> KubeRequest<'a> {
    /// Creates a GET request.
    pub(super) fn get(url: String, action: Action<'a>) -> Self {
        KubeRequest {
            of: RequestOrigin::Operator,
            method: Method::GET,
            url,
            accept: JSON,
            content: None,
            action,
            websocket: None,
        }
    }

    /// Requests a response of another type.
    pub(super) fn accepting(self, accept: &'static str) -> Self {
        KubeRequest { accept, ..self }
    }

    /// Returns the request for one attempt, behind the fence.
    ///
    /// # Errors
    /// Fails if the address or a header is not valid.
    pub(super) fn build(
        &self,
        fence: Option<Fence>,
    ) -> Result<http::Request<FencedBody>, RequestFailure> {
        let mut builder = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.url)
            .header(header::ACCEPT, HeaderValue::from_static(self.accept))
            .header(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some((key, protocols)) = self.websocket {
            builder = builder
                .header(header::CONNECTION, "Upgrade")
                .header(header::UPGRADE, "websocket")
                .header(header::SEC_WEBSOCKET_VERSION, "13")
                .header(header::SEC_WEBSOCKET_KEY, key)
                .header(header::SEC_WEBSOCKET_PROTOCOL, protocols);
        }
        let mut body = Body::empty();
        if let Some((content_type, content)) = &self.content {
            builder = builder.header(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            body = Body::from(content.clone());
        }
        let body = FencedBody::new(body, fence);
        builder.body(body).map_err(|it| RequestFailure::Unsendable(it.to_string()))
    }

    /// Returns whether the request changes something on the server.
    pub(super) fn is_mutating(&self) -> bool {
        self.method != Method::GET || self.websocket.is_some()
    }

    /// Returns whether executing the request twice has the same effect as once.
    pub(super) fn is_idempotent(&self) -> bool {
        let Action::Use { resource, .. } = &self.action else { return true };
        if self.websocket.is_some() {
            // A command would run twice.
            return false;
        }
        match (&self.method, &self.content) {
            // A duplicate event is better than a lost one.
            (&Method::POST, _) => self.of == RequestOrigin::Operator && resource.plural == "events",
            (&Method::PATCH, Some((JSON_PATCH, patch))) => has_test(patch),
            _ => true,
        }
    }

    /// Returns the timeout of an attempt. Lists may take long; for all other requests the default of the settings is far too long.
    pub(super) fn time_limit(&self, networking: &NetworkingSettings) -> Duration {
        let limit = networking.request_timeout;
        let is_long = match &self.action {
            Action::Discover(_) => false,
            Action::Use { verb, subresource, .. } => {
                matches!(*verb, "list" | "watch") || *subresource == Some("log")
            }
        };
        if is_long || limit != REQUEST_TIMEOUT { limit } else { SINGLE_REQUEST_TIMEOUT }
    }

    /// Formats the request for log lines, with the server, which is the most frequent mistake.
    pub(super) fn label(&self, server: &str) -> String {
        format!("{} {}{}", self.method, server.trim_end_matches('/'), self.url)
    }
}

/// Returns whether a JSON patch tests the values that it changes: then it cannot be applied twice.
fn has_test(patch: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Operation<'a> {
        #[serde(borrow)]
        op: Cow<'a, str>,
    }
    let operations = serde_json::from_slice::<Vec<Operation<'_>>>(patch);
    operations.is_ok_and(|all| all.iter().any(|it| it.op == "test"))
}

#[cfg(test)]
mod tests {
    use super::{Action, KubeRequest};

    #[test]
    fn a_line_about_a_request_names_the_server_if_it_is_known() {
        let request = KubeRequest::get("/api".into(), Action::Discover("the cluster"));
        assert_eq!(request.label("https://example.com:6443/"), "GET https://example.com:6443/api");
        assert_eq!(request.label(""), "GET /api");
    }
}
