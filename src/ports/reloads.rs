//! Hands a new generation of scripts to the operator that runs the live one.

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::logic::generation::{Changes, Generation};

/// A generation that is loaded and checked. Its functions can be called alongside those of the live one.
#[derive(Debug)]
pub struct Candidate {
    /// What it declares.
    pub generation: Generation,
    /// Receives what became of it.
    pub verdict: oneshot::Sender<Result<Changes, Rejection>>,
    /// Cancelled when a newer one replaces it, which then does not wait for its start-up handlers. It may take over nevertheless.
    pub withdrawn: CancellationToken,
}

/// Why a candidate was rejected; the live generation keeps running.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A start-up handler that was added or changed has failed permanently.
    #[error("{0}")]
    Startup(String),
    /// A function that chooses resources, and was added or changed, fails for all of them.
    #[error("{0}")]
    Selector(String),
    /// It was withdrawn in time.
    #[error("it was withdrawn")]
    Withdrawn,
    /// The operator ends.
    #[error("the operator ends")]
    Ending,
}

/// Receives candidates; each waits for the verdict on the one before.
pub type Reloads = mpsc::Receiver<Candidate>;
