//! Counts the items of a value, which say how long it takes to copy and to free it.

use serde_json::{Map, Value};

/// Maximum number of items of lists and fields of maps, nested ones included, in a patch as a whole, and in a result. The operator
/// copies, compares and frees them on its own thread.
pub const ITEMS_MAX: usize = 20_000;

/// Returns the number of items of lists and fields of maps in a value, nested ones included.
pub fn items(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|it| 1 + items(it)).sum(),
        Value::Object(fields) => items_of(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns the number of fields, including the items and fields below them.
pub fn items_of(fields: &Map<String, Value>) -> usize {
    fields.values().map(|it| 1 + items(it)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::items;

    #[test]
    fn nested_items_and_fields_are_counted() {
        for (value, count) in [
            (json!(null), 0),
            (json!("text"), 0),
            (json!([]), 0),
            (json!([1, [2, 3]]), 4),
            (json!({ "a": { "b": [{ "c": 1 }] }, "d": {} }), 5),
        ] {
            assert_eq!(items(&value), count, "{value}");
        }
    }
}
