//! Requests: paths, parameters, bodies, and their log.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod deletion;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod protobuf;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod yaml;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderMap, header::AsHeaderName};

use hyper::upgrade::OnUpgrade;

use crate::rbac::User;

/// A complete request, with its body and its user.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// As sent, without the question mark.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Completes when HTTP ends on this connection, if the client has requested an upgrade.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The user, as authentication determined it.
    pub(crate) user: User,
}

impl ApiRequest {
    /// Returns the path with the query.
    pub(crate) fn target(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }

    /// Returns a header as a string; empty if it is missing.
    pub(crate) fn header(&self, name: impl AsHeaderName) -> &str {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}
