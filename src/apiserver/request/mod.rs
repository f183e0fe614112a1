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

/// A whole request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    /// As sent, without the question mark.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
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
