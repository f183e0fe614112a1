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
pub enum Key {
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

impl Key {
    /// Returns a string key.
    pub fn text(text: &str) -> Self {
        Key::Text(text.into())
    }

    /// Returns the key of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Key::Null,
            Value::Bool(it) => Key::Bool(*it),
            Value::String(it) => Key::text(it),
            Value::Number(it) => it
                .as_i64()
                .or_else(|| it.as_f64().and_then(whole))
                .map_or_else(|| Key::Json(it.to_string().into()), Key::Integer),
            Value::Array(_) | Value::Object(_) => Key::Json(value.to_string().into()),
        }
    }

    /// Returns the size of its string, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Key::Null | Key::Bool(_) | Key::Integer(_) => 0,
            Key::Text(it) | Key::Json(it) => it.len(),
        }
    }

    /// Returns the key as a value of its own type.
    pub fn to_value(&self) -> Value {
        match self {
            Key::Null => Value::Null,
            Key::Bool(it) => (*it).into(),
            Key::Integer(it) => (*it).into(),
            Key::Text(it) => (&**it).into(),
            // The JSON was written by [`Key::of`].
            Key::Json(it) => depth::value(it.as_bytes()).unwrap_or_default(),
        }
    }

    /// Returns the key as in a JSON object, where all keys are strings: `null`, `true`, `8080`.
    pub fn to_name(&self) -> String {
        match self {
            Key::Null => "null".into(),
            Key::Bool(it) => it.to_string(),
            Key::Integer(it) => it.to_string(),
            Key::Text(it) | Key::Json(it) => it.to_string(),
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
pub struct Owner(Identity);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Uuid(Uuid),
    Text(Arc<str>),
}

impl Owner {
    /// Returns the identity of an object: its uid, or other fields that distinguish it.
    pub fn of(header: &Header) -> Self {
        if let Some(uid) = header.uid.as_deref().filter(|it| !it.is_empty()) {
            let text = || Identity::Text(uid.into());
            return Owner(uid::parse(uid).map_or_else(text, Identity::Uuid));
        }
        let part = |it: &Option<String>| it.clone().unwrap_or_default();
        Owner(Identity::Text([part(&header.namespace), part(&header.name)].join("/").into()))
    }
}
