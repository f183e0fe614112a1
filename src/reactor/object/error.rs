//! Reasons to end a cycle early.

use crate::handling::{asking::FilterError, patching::PatchError};
use crate::logic::{
    handlers::outcome::Raised,
    object::{Unreadable, corrupt::CorruptState},
};
use crate::ports::ErrorClass;

/// The reason why a cycle ended early. Errors of handlers are not among these: they are outcomes.
#[derive(Debug, thiserror::Error)]
pub(in crate::reactor) enum CycleError {
    /// The state stored on the object cannot be read.
    #[error(transparent)]
    Corrupt(#[from] CorruptState),
    /// The object itself cannot be read.
    #[error("the object cannot be read: {0}")]
    Unreadable(Unreadable),
    /// A filter function of a sub-handler failed.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The patch could not be sent.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// An invariant is broken.
    #[error("a bug in the operator itself: {0}; please report it")]
    Bug(String),
}

impl CycleError {
    /// Returns whether the server may have accepted the request that failed: no response came, or it reports its own failure.
    pub(in crate::reactor) fn is_uncertain(&self) -> bool {
        matches!(self, CycleError::Patch(PatchError::Api(error)) if error.class == ErrorClass::Retry)
    }

    /// Returns the error with its hint for the user, if it has one.
    pub(in crate::reactor) fn hinted(&self) -> String {
        let hint = match self {
            CycleError::Patch(PatchError::Api(error)) => error.hint.as_deref(),
            CycleError::Patch(PatchError::Transformation(_) | PatchError::Conflict)
            | CycleError::Corrupt(_)
            | CycleError::Unreadable(_)
            | CycleError::Filter(_)
            | CycleError::Bug(_) => None,
        };
        hint.map_or_else(|| self.to_string(), |hint| format!("{self}. hint: {hint}"))
    }

    /// Returns the script's stack trace, if the error came from a script.
    pub(in crate::reactor) fn trace(&self) -> Option<&str> {
        match self {
            CycleError::Filter(error) => error.raised.trace.as_deref(),
            CycleError::Patch(PatchError::Transformation(raised)) => raised.trace.as_deref(),
            CycleError::Patch(PatchError::Api(_) | PatchError::Conflict)
            | CycleError::Corrupt(_)
            | CycleError::Unreadable(_)
            | CycleError::Bug(_) => None,
        }
    }

    /// Converts the error into one of the parent handler whose sub-handlers met it, which is retried like any other.
    pub(in crate::reactor) fn into_raised(self) -> Raised {
        let trace = self.trace().map(str::to_owned);
        Raised { trace, ..Raised::of_host(self.to_string()) }
    }
}
