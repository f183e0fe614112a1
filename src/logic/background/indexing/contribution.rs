//! The effect of one call of an index handler.

use serde_json::Value;

use super::{item::IndexItem, key::IndexKey};
use crate::logic::handlers::outcome::Outcome;

/// The effect of one call of an index handler on the values of its object.
#[derive(Clone, Debug, PartialEq)]
pub enum Contribution {
    /// The values are kept.
    Keep,
    /// The values are removed.
    Remove,
    /// The values are replaced by these, at most one for each key; for equal keys the later one is used.
    Replace(Vec<(IndexKey, IndexItem)>),
}

impl Contribution {
    /// Takes the result from an outcome and returns its effect: a map is values by key, nil changes nothing, and anything else is one value without a key.
    ///
    /// An ignored error has no result, so the values of an earlier event are kept.
    pub fn take(outcome: &mut Outcome) -> Self {
        if outcome.error.is_some() {
            return Contribution::Remove;
        }
        if let Some(entries) = outcome.entries.take() {
            let entry = |(key, value): (Value, Value)| (IndexKey::of(&key), value.into());
            return Contribution::Replace(entries.into_iter().map(entry).collect());
        }
        match outcome.result.take() {
            None | Some(Value::Null) => Contribution::Keep,
            Some(Value::Object(entries)) => {
                let entry = |(key, value): (String, Value)| (IndexKey::text(&key), value.into());
                Contribution::Replace(entries.into_iter().map(entry).collect())
            }
            Some(
                value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)),
            ) => Contribution::Replace(vec![(IndexKey::Null, value.into())]),
        }
    }
}
