//! The paths of fields that messages name, built on the way down: `spec.containers[0].name`.

use std::fmt::Display;

/// Goes on to a field.
pub(crate) fn push_field(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Goes on to an item of a list, or to what a map has under a key of the user.
pub(crate) fn push_item(path: &mut String, item: impl Display) {
    path.push('[');
    path.push_str(&item.to_string());
    path.push(']');
}
