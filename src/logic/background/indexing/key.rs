//! The keys of an index: those of the values, and those of the objects that the values come from.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use crate::logic::{
    object::{Header, depth},
    text::uid,
};

/// A key of an index. Numbers of the same value are the same key, whatever their notation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexKey {
    /// The key of values that were not returned in a map.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A string: the usual key.
    Text(Arc<str>),
    /// Anything else, as compact JSON: other numbers, lists, maps.
    Json(Arc<str>),
}

impl IndexKey {
    /// Returns a string key.
    pub fn text(text: &str) -> Self {
        IndexKey::Text(text.into())
    }

    /// Returns the key of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => IndexKey::Null,
            Value::Bool(it) => IndexKey::Bool(*it),
            Value::String(it) => IndexKey::text(it),
            Value::Number(it) => it
                .as_i64()
                .or_else(|| it.as_f64().and_then(whole))
                .map_or_else(|| IndexKey::Json(it.to_string().into()), IndexKey::Integer),
            Value::Array(_) | Value::Object(_) => IndexKey::Json(value.to_string().into()),
        }
    }

    /// Returns the size of its string, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            IndexKey::Null | IndexKey::Bool(_) | IndexKey::Integer(_) => 0,
            IndexKey::Text(it) | IndexKey::Json(it) => it.len(),
        }
    }

    /// Returns the key as a value of its own type.
    pub fn to_value(&self) -> Value {
        match self {
            IndexKey::Null => Value::Null,
            IndexKey::Bool(it) => (*it).into(),
            IndexKey::Integer(it) => (*it).into(),
            IndexKey::Text(it) => (&**it).into(),
            // The JSON was written by [`IndexKey::of`].
            IndexKey::Json(it) => depth::value(it.as_bytes()).unwrap_or_default(),
        }
    }

    /// Returns the key as in a JSON object, where all keys are strings: `null`, `true`, `8080`.
    pub fn to_name(&self) -> String {
        match self {
            IndexKey::Null => "null".into(),
            IndexKey::Bool(it) => it.to_string(),
            IndexKey::Integer(it) => it.to_string(),
            IndexKey::Text(it) | IndexKey::Json(it) => it.to_string(),
        }
    }
}

/// Returns the integer that a float represents, if it is one and small enough to be exact.
fn whole(number: f64) -> Option<i64> {
    /// 2^53: up to it, a float represents only one integer.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in the range of i64")]
    is_whole.then_some(number as i64)
}

/// The object that values come from. Each index has one for each of its objects, so that of a usual uid is small.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(OwnerIdentity);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OwnerIdentity {
    Uuid(Uuid),
    Text(Arc<str>),
}

impl Owner {
    /// Returns the identity of an object: its uid, or other fields that distinguish it.
    pub fn of(header: &Header) -> Self {
        if let Some(uid) = header.uid.as_deref().filter(|it| !it.is_empty()) {
            let text = || OwnerIdentity::Text(uid.into());
            return Owner(uid::parse(uid).map_or_else(text, OwnerIdentity::Uuid));
        }
        let part = |it: &Option<String>| it.clone().unwrap_or_default();
        Owner(OwnerIdentity::Text([part(&header.namespace), part(&header.name)].join("/").into()))
    }
}
