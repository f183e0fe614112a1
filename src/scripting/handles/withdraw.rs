//! Removes fields from a patch under construction.

use serde_json::{Map, Value};

/// Removes the value at this path, and the levels above that become empty: an assignment created them, and they would be sent.
pub(crate) fn withdraw(root: &mut Map<String, Value>, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        root.shift_remove(first);
    } else if let Some(Value::Object(map)) = root.get_mut(first) {
        withdraw(map, rest);
        if map.is_empty() {
            root.shift_remove(first);
        }
    }
}
