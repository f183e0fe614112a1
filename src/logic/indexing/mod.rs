//! In-memory tables that index handlers fill from objects, and what the results of these handlers mean.
//!
//! The contract is `tests/vectors/indexing.json`. Before: `features/indexes`, which calls the handlers. After:
//! `ports/indexes.rs`, which shares the tables with all scripts.

mod failures;
mod key;
mod table;

use std::sync::Arc;

use serde_json::Value;

pub use self::{
    failures::Failures,
    key::{Key, Owner},
    table::{Place, Table, Values},
};
use super::outcome::Outcome;

/// What one call of an index handler means for the values of its object.
#[derive(Clone, Debug, PartialEq)]
pub enum Contribution {
    /// They stay as they are.
    Keep,
    /// They go.
    Remove,
    /// These take their place, at most one for each key; the later of two for one key wins.
    Replace(Vec<(Key, Arc<Value>)>),
}

impl Contribution {
    /// The meaning of an outcome: a map is values by key, nothing changes nothing, and all else is one value without a key.
    ///
    /// An error that is ignored has no result, so it keeps what an earlier event left.
    pub fn of(outcome: Outcome) -> Self {
        if outcome.error.is_some() {
            return Contribution::Remove;
        }
        if let Some(entries) = outcome.entries {
            let entry = |(key, value): (Value, Value)| (Key::of(&key), Arc::new(value));
            return Contribution::Replace(entries.into_iter().map(entry).collect());
        }
        match outcome.result {
            None | Some(Value::Null) => Contribution::Keep,
            Some(Value::Object(entries)) => {
                let entry = |(key, value): (String, Value)| (Key::text(&key), Arc::new(value));
                Contribution::Replace(entries.into_iter().map(entry).collect())
            }
            Some(
                value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)),
            ) => Contribution::Replace(vec![(Key::Null, Arc::new(value))]),
        }
    }
}

#[cfg(test)]
mod tests;
