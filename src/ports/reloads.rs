//! The way of a new generation of scripts to the operator that runs the present one.

use tokio::sync::{mpsc, oneshot};

use crate::logic::generation::{Changes, Generation};

/// A generation that is loaded and checked. Its functions can be called, side by side with those of the present one.
#[derive(Debug)]
pub struct Candidate {
    /// What it declares.
    pub generation: Generation,
    /// Told what became of it.
    pub verdict: oneshot::Sender<Result<Changes, Rejection>>,
}

/// Why a generation was not taken; the present one goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A start-up handler that was added or changed has failed for good.
    #[error("{0}")]
    Startup(String),
    /// The operator ends.
    #[error("the operator ends")]
    Ending,
}

/// Candidates on their way; each waits for the verdict on the one before.
pub type Reloads = mpsc::Receiver<Candidate>;
