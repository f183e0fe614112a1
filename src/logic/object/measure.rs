//! Measures values: their items, which say how long it takes to copy and to free them, and their bytes as JSON.

use kopf_json::values;
use serde_json::{Map, Number, Value};

use crate::logic::text::size;

/// Maximum number of items of lists and fields of maps, nested ones included, in a patch as a whole, and in a result. The operator
/// copies, compares and frees them on its own thread.
pub const ITEMS_MAX: usize = 20_000;

/// Maximum number of bytes of a patch as a whole: as large as the body of a request to an API server may be.
pub const PATCH_BYTES_MAX: usize = 3 << 20;

/// What to do about a result or a patch with too many items.
pub const ADVICE: &str = "keep them in a separate object, such as a ConfigMap";

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

/// The bytes of a string as JSON, without its content.
const TEXT: usize = 3;

/// Returns the bytes of a field as JSON, without its value.
pub fn field(key: &str) -> usize {
    text(key) + 1
}

/// Returns the bytes of a number as JSON, including a comma or a sign.
pub fn number(number: &Number) -> usize {
    let whole = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
    let digits =
        |it: u64| usize::try_from(it.checked_ilog10().unwrap_or_default()).unwrap_or_default();
    whole.map_or_else(|| number.to_string().len() + 1, |it| digits(it) + 3)
}

/// Returns the bytes of a string as JSON, with its quotes and a comma.
pub fn text(text: &str) -> usize {
    text.len() + values::escapes(text) + TEXT
}

/// Returns the bytes of a value as JSON, or a few more.
pub fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(it) => number(it),
        Value::String(it) => text(it),
        Value::Array(items) => items.iter().map(bytes).sum::<usize>() + 3,
        Value::Object(fields) => bytes_of(fields),
    }
}

/// Returns the bytes of a map as JSON, or a few more.
pub fn bytes_of(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(key, it)| field(key) + bytes(it)).sum::<usize>() + 3
}

/// Checks the size of a patch as a whole, with the items and the bytes of what is to be added to it.
///
/// # Errors
/// Says which limit it would exceed.
pub fn admit(patch: &Map<String, Value>, items: usize, bytes: usize) -> Result<(), String> {
    let (items, bytes) = (items + items_of(patch), bytes + bytes_of(patch));
    if items > ITEMS_MAX {
        return Err(format!("the patch would have more than {ITEMS_MAX} items: {items}; {ADVICE}"));
    }
    if bytes > PATCH_BYTES_MAX {
        let (bytes, limit) = (size::about(bytes), size::shown(PATCH_BYTES_MAX));
        return Err(format!("the patch would be larger than {limit}: {bytes}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{ITEMS_MAX, PATCH_BYTES_MAX, admit, bytes, bytes_of, items};

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

    #[test]
    fn the_bytes_of_a_value_are_its_size_as_json_or_a_little_more() {
        for value in [
            json!(null),
            json!([null, true, false, 0, 9, 10, -1, i64::MIN, u64::MAX]),
            json!([0.1, 1e300, -1.5e-300, 0.300_000_000_000_000_04]),
            json!({ "a\"\\\n\t\u{1}\u{8}\u{7f}é€𝄞": "a\"\\\n\r\t\u{1}\u{c}\u{1f}\u{7f}é€𝄞" }),
            json!({ "": [[], {}, [{}], ""] }),
        ] {
            let (bytes, exact) = (bytes(&value), value.to_string().len());
            assert!(bytes >= exact && bytes <= exact * 3 + 8, "{value}: {bytes}, {exact}");
        }
    }

    #[test]
    fn a_patch_is_limited_as_a_whole() {
        let fields = |value| Map::from_iter([("status".to_owned(), value)]);
        let wide = fields(Value::from(vec![1; ITEMS_MAX - 1]));
        assert_eq!(admit(&wide, 0, 0), Ok(()));
        let refused = admit(&wide, 1, 0).expect_err("too many items");
        assert_eq!(
            refused,
            "the patch would have more than 20000 items: 20001; keep them in a separate object, such as a ConfigMap"
        );
        let long = fields("x".repeat(PATCH_BYTES_MAX / 2).into());
        assert_eq!(admit(&long, 0, PATCH_BYTES_MAX - bytes_of(&long)), Ok(()));
        let refused = admit(&long, 0, bytes_of(&long)).expect_err("too many bytes");
        assert_eq!(refused, "the patch would be larger than 3 MiB: 3.0 MiB");
    }
}
