//! What was asked and answered: transcripts for tests.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

/// Requests remembered; the oldest are forgotten first. Far more than one test makes.
const REQUESTS_MAX: usize = 10_000;

/// One request with its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// When it was answered, in tokio's time.
    pub at: Instant,
    /// Such as `PATCH`.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// As sent; empty if there is none.
    pub query: String,
    /// Empty if there is none.
    pub content_type: String,
    /// As sent.
    pub body: Bytes,
    /// The HTTP status of the answer.
    pub status: u16,
    /// `metadata.resourceVersion` of the answer.
    pub version: Option<String>,
}

/// Bytes of bodies remembered: a server that runs for days with large objects must not fill the memory.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A bounded log.
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
