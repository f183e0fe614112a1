//! A patch under construction: what one cycle wants to change on its object.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::function::Function;

/// A merge-patch and functions over the raw body, sent when the cycle ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// RFC 7386: nulls delete.
    pub merge: Map<String, Value>,
    /// Applied in order to the freshest known body; the difference is sent as an RFC 6902 patch.
    pub transformations: Vec<Transformation>,
}

/// One function over the raw body. Idempotent: after a conflict it is applied again.
#[derive(Clone, Debug, PartialEq)]
pub enum Transformation {
    /// Add this finalizer.
    BlockDeletion(Arc<str>),
    /// Remove this finalizer.
    AllowDeletion(Arc<str>),
    /// `ctx.patch.fns`
    Scripted(Function),
}

impl Patch {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.transformations.is_empty()
    }
}
