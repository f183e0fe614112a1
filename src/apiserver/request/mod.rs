//! What is asked: paths, parameters, bodies, and the log of requests.

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

/// A whole request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    /// As sent, without the question mark.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The end of HTTP on this connection, if the client wants that.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// Who asks.
    pub(crate) user: User,
}

impl Ask {
    /// The path with the query.
    pub(crate) fn target(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }

    /// A header as text; empty if there is none.
    pub(crate) fn header(&self, name: impl AsHeaderName) -> &str {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}
