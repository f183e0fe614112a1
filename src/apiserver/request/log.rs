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

/// A bounded log.
#[derive(Debug, Default)]
pub(crate) struct RequestLog(VecDeque<LoggedRequest>);

impl RequestLog {
    pub(crate) fn push(&mut self, request: LoggedRequest) {
        if self.0.len() == REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(request);
    }

    pub(crate) fn all(&self) -> Vec<LoggedRequest> {
        self.0.iter().cloned().collect()
    }
}
