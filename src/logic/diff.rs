//! What changed between two structures.
//!
//! The contract is `tests/vectors/diff.json` and `diff-reduce.json`.

use serde_json::Value;

use crate::settings::FieldPath;

/// Operations that turn the old structure into the new one; empty if nothing changed.
pub type Diff = Vec<DiffItem>;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffItem {
    /// What happened.
    pub operation: Operation,
    /// Where; empty is the whole structure.
    pub field: FieldPath,
    /// Null for additions.
    pub old: Value,
    /// Null for removals.
    pub new: Value,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// There was nothing.
    Add,
    /// There was something else.
    Change,
    /// There is nothing any more.
    Remove,
}

impl Operation {
    /// The word used in kwargs.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::Change => "change",
            Operation::Remove => "remove",
        }
    }
}
