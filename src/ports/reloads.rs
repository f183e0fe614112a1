//! The way of a new generation of scripts to the operator that runs the present one.

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::logic::generation::{Changes, Generation};

/// A generation that is loaded and checked. Its functions can be called, side by side with those of the present one.
#[derive(Debug)]
pub struct Candidate {
    /// What it declares.
    pub generation: Generation,
    /// Told what became of it.
    pub verdict: oneshot::Sender<Result<Changes, Rejection>>,
    /// Cancelled when it is out of date: then its start-up handlers need not be waited for. It may be too late for that.
    pub withdrawn: CancellationToken,
}

/// Why a generation was not taken; the present one goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A start-up handler that was added or changed has failed for good.
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

/// Candidates on their way; each waits for the verdict on the one before.
pub type Reloads = mpsc::Receiver<Candidate>;
