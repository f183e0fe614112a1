//! Pod templates: their equality, and the short hashes that distinguish them in names.
//!
//! The hashes look like those of the real controllers but differ, because those depend on the memory layout of Go structs.

use serde_json::Value;

use crate::object;
use crate::sorted;

/// The letters of generated names: no vowels, and no letters that look alike.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns a short hash of a template. `salt` distinguishes templates with the same hash.
pub(crate) fn hash(template: &Value, salt: Option<i64>) -> String {
    let mut state: u32 = 0x811c_9dc5;
    feed(&normal(template, &[]), &mut state);
    if let Some(salt) = salt {
        mix(&salt.to_le_bytes(), &mut state);
    }
    let letter = |digit: u8| LETTERS.get(usize::from(digit) % LETTERS.len()).copied();
    state.to_string().bytes().filter_map(letter).map(char::from).collect()
}

/// Returns whether two templates make the same Pods, apart from these labels.
pub(crate) fn same(left: &Value, right: &Value, ignored: &[&str]) -> bool {
    normal(left, ignored) == normal(right, ignored)
}

/// Removes fields without a meaning, and the ignored labels.
fn normal(template: &Value, ignored: &[&str]) -> Value {
    let mut template = template.clone();
    if template.pointer("/metadata/creationTimestamp").is_some_and(Value::is_null)
        && let Some(metadata) = template.get_mut("metadata")
    {
        object::put(metadata, "creationTimestamp", None);
    }
    if let Some(labels) = template.pointer_mut("/metadata/labels") {
        for label in ignored {
            object::put(labels, label, None);
        }
    }
    template
}

/// Computes FNV-1a over the value with sorted keys. The JSON parser bounds the depth of bodies, and so this recursion.
fn feed(value: &Value, state: &mut u32) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            sorted::sort_by_key(&mut fields, |(name, _)| *name);
            mix(b"{", state);
            for (name, value) in fields {
                mix(name.as_bytes(), state);
                mix(b":", state);
                feed(value, state);
            }
            mix(b"}", state);
        }
        Value::Array(items) => {
            mix(b"[", state);
            for item in items {
                feed(item, state);
                mix(b",", state);
            }
            mix(b"]", state);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            mix(value.to_string().as_bytes(), state);
        }
    }
}

fn mix(bytes: &[u8], state: &mut u32) {
    for byte in bytes {
        *state = (*state ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
}
