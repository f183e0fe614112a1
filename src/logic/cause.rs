//! What happened to an object, with the evidence.

use std::sync::Arc;

use serde_json::Value;

use super::{diff::Diff, reason::Reason};

/// A reason with what is needed to choose and call handlers for it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name.
    pub reason: Reason,
    /// Whether the object is new to this process, so that resuming handlers join.
    pub initial: bool,
    /// The last handled essence; `None` if the object was never handled.
    pub old: Option<Arc<Value>>,
    /// The present essence.
    pub new: Arc<Value>,
    /// From old to new.
    pub diff: Arc<Diff>,
}
