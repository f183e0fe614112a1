//! Fields of structures, by path.

use serde_json::Value;

/// The value at a path; `None` if a key is missing or something on the way is not a map.
///
/// A key with null is there, and its value is null.
pub fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.as_object()?.get(key))
}
