//! Passes a new generation of scripts to the operator that runs the live one.

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::logic::generation::{Changes, Generation};

/// A generation that is loaded and checked. Its functions can be called alongside those of the live one.
#[derive(Debug)]
pub struct Candidate {
    /// The new generation: all handlers after an edit of the scripts.
    pub generation: Generation,
    /// Receives the changes after the takeover, or the reason of the rejection.
    pub verdict: oneshot::Sender<Result<Changes, Rejection>>,
    /// Cancelled when a newer candidate replaces this one, which then does not wait for its start-up handlers. This candidate may
    /// take over nevertheless.
    pub withdrawn: CancellationToken,
}

/// The reason why a candidate was rejected; the live generation keeps running.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A start-up handler that was added or changed has failed permanently.
    #[error("{0}")]
    Startup(String),
    /// A resource selector function that was added or changed fails for every resource.
    #[error("{0}")]
    Selector(String),
    /// It adds the first admission handlers, and they cannot be served.
    #[error("{0}")]
    Webhooks(String),
    /// A newer candidate replaced it before it could take over.
    #[error("a newer edit has replaced it")]
    Withdrawn,
    /// The operator is stopping.
    #[error("the operator is stopping")]
    Ending,
}

/// The receiver of candidates, one at a time: each waits for the verdict on the previous one.
pub type Reloads = mpsc::Receiver<Candidate>;
