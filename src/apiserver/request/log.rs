//! The log of requests and responses: transcripts for tests.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

/// Limit of logged requests; the oldest are dropped first. It is far more than one test makes.
const REQUESTS_MAX: usize = 10_000;

/// One request with its response.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// The time of the response, by tokio's clock.
    pub at: Instant,
    /// The HTTP method, such as `PATCH`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as sent; empty if there is none.
    pub query: String,
    /// Empty if there is none.
    pub content_type: String,
    /// The body as sent.
    pub body: Bytes,
    /// The HTTP status code of the response.
    pub status: u16,
    /// `metadata.resourceVersion` of the response.
    pub version: Option<String>,
}

/// Limit of all logged bodies, in bytes: a server that runs for days with large objects must not fill the memory.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A bounded log of requests.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: VecDeque<LoggedRequest>,
    bytes: usize,
}

impl RequestLog {
    pub(crate) fn push(&mut self, request: LoggedRequest) {
        self.bytes += request.body.len();
        self.requests.push_back(request);
        while self.requests.len() > REQUESTS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.requests.pop_front() else { return };
            self.bytes -= oldest.body.len();
        }
    }

    pub(crate) fn all(&self) -> Vec<LoggedRequest> {
        self.requests.iter().cloned().collect()
    }
}
