//! Field paths in messages, built while descending into a value: `spec.containers[0].name`.

use std::fmt::Display;

/// Appends a field, after a dot unless it is the first one.
pub(crate) fn push_field(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Appends the index of a list, or the key of a map.
pub(crate) fn push_item(path: &mut String, item: impl Display) {
    path.push('[');
    path.push_str(&item.to_string());
    path.push(']');
}
