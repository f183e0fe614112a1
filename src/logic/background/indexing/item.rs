//! One value of an index.

use std::sync::Arc;

use serde_json::Value;

/// A value under a key of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexItem {
    /// What a function has returned.
    Value(Arc<Value>),
    /// Bytes that only the operator reads, such as a compressed object: there may be very many.
    Packed(Arc<[u8]>),
}

impl IndexItem {
    /// Returns the value for functions; `None` if it is only for the operator.
    pub fn value(&self) -> Option<&Arc<Value>> {
        match self {
            IndexItem::Value(value) => Some(value),
            IndexItem::Packed(_) => None,
        }
    }

    /// Returns the number of bytes that only the operator reads.
    pub fn packed_bytes(&self) -> usize {
        match self {
            IndexItem::Value(_) => 0,
            IndexItem::Packed(bytes) => bytes.len(),
        }
    }

    /// Returns the approximate bytes of memory that it takes under a key of `key` bytes.
    pub(super) fn bytes(&self, key: usize) -> usize {
        match self {
            IndexItem::Value(value) => entry_bytes(key, value),
            IndexItem::Packed(bytes) => ENTRY + 2 * key + bytes.len(),
        }
    }
}

impl From<Value> for IndexItem {
    fn from(value: Value) -> Self {
        IndexItem::Value(Arc::new(value))
    }
}

/// The key in three tables, the place, and the header of the value.
const ENTRY: usize = 256;

/// Returns the approximate bytes of memory that a value takes in an index under a key of `key` bytes.
pub fn entry_bytes(key: usize, value: &Value) -> usize {
    ENTRY + 2 * key + footprint(value)
}

/// Returns the approximate bytes of memory of a value.
fn footprint(value: &Value) -> usize {
    /// Bytes per value in a list, and per field in a map including the header of its key.
    const HEAD: usize = 72;
    const FIELD: usize = 112;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => HEAD,
        Value::String(text) => HEAD + text.len(),
        Value::Array(items) => HEAD + items.iter().map(footprint).sum::<usize>(),
        Value::Object(fields) => {
            let field = |(key, it): (&String, &Value)| FIELD + key.len() + footprint(it);
            HEAD + fields.iter().map(field).sum::<usize>()
        }
    }
}
