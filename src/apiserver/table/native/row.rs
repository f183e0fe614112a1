//! The fields of an object in the forms that many columns need.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::sorted::CollectSorted as _;
use crate::{
    labels,
    object::{self, list, text},
    table::age,
};

/// Shown for an empty value.
pub(super) const NONE: &str = "<none>";

/// One object, and the time at which it is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRow<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> TableRow<'a> {
    pub(super) fn name(&self) -> Value {
        object::meta(self.object, "name").into()
    }

    /// Returns the time since the creation.
    pub(super) fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp").into()
    }

    /// Returns the time since a time in the object; `<unknown>` if it is missing.
    pub(super) fn since(&self, pointer: &str) -> String {
        age::since(self.text(pointer), self.now).unwrap_or_else(|| age::UNKNOWN.into())
    }

    /// Returns the time since a time in the object; `None` if it is missing.
    pub(super) fn since_some(&self, pointer: &str) -> Option<String> {
        Some(self.text(pointer)).filter(|it| !it.is_empty()).map(|_| self.since(pointer))
    }

    pub(super) fn get(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|it| !it.is_null())
    }

    /// Returns a string; empty if it is missing.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    /// Returns a string, or `other` if it is empty.
    pub(super) fn text_or(&self, pointer: &str, other: &'a str) -> &'a str {
        Some(self.text(pointer)).filter(|it| !it.is_empty()).unwrap_or(other)
    }

    /// Returns a number; zero if it is missing.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        number(self.object, pointer)
    }

    pub(super) fn flag(&self, pointer: &str) -> bool {
        object::flag(self.object, pointer)
    }

    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        list(self.object, pointer)
    }

    /// Returns the number of parts of a list or a map.
    pub(super) fn count(&self, pointer: &str) -> usize {
        match self.get(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// Returns the names and the images of the containers of a template, as two cells.
    pub(super) fn containers(&self, pointer: &str) -> [Value; 2] {
        let items = self.list(pointer);
        ["/name", "/image"].map(|it| join(items.iter().map(|item| text(item, it)), ",").into())
    }

    /// Formats a map of labels.
    pub(super) fn labels(&self, pointer: &str) -> String {
        let labels = self.get(pointer).and_then(Value::as_object).into_iter().flatten();
        let labels: BTreeMap<&str, &str> =
            labels.map(|(key, it)| (key.as_str(), it.as_str().unwrap_or_default())).collect_map();
        or_none(join(labels.iter().map(|(key, value)| format!("{key}={value}")), ","))
    }

    /// Formats a label selector.
    pub(super) fn selector(&self, pointer: &str) -> String {
        self.get(pointer).map_or_else(|| NONE.into(), |it| or_none(labels::text(it)))
    }
}

/// Returns a number; zero if it is missing.
pub(super) fn number(value: &Value, pointer: &str) -> i64 {
    object::number(value, pointer).unwrap_or_default()
}

pub(super) fn join<T: AsRef<str>>(parts: impl IntoIterator<Item = T>, between: &str) -> String {
    let mut joined = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            joined.push_str(between);
        }
        joined.push_str(part.as_ref());
    }
    joined
}

/// Returns the string, or `<none>` if it is empty.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { NONE.into() } else { text }
}

/// Joins the first parts of a list, and adds the number of further ones.
pub(super) fn first_of(parts: &[String], shown: usize, between: &str) -> String {
    let first = join(parts.iter().take(shown), between);
    match parts.len().saturating_sub(shown) {
        0 => first,
        more => format!("{first} + {more} more..."),
    }
}

/// Formats a number or a string.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}
