//! JSON in the form of the stored state: compared by value, written as ASCII.
//!
//! Python wrote the first states that an operator may find, so its rules apply here: `1`, `1.0` and `true` are equal, and floats
//! are written in their shortest form with at least one fractional digit. Integers beyond 64 bits become floats; the Kubernetes API
//! has none.

use std::{
    cmp::Ordering,
    fmt::Write as _,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Number, Value};

/// Compares deeply; numbers and booleans compare by value. The order of keys does not matter.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::Number(_) | Value::Bool(_), Value::Number(_) | Value::Bool(_)) => {
            compare(a, b) == Some(Ordering::Equal)
        }
        _ => a == b,
    }
}

/// Returns the bytes that a string is longer as JSON, without its quotes.
pub fn escapes(text: &str) -> usize {
    let count = |it: &u8| {
        let is_short = matches!(it, 0x08 | b'\t' | b'\n' | 0x0c | b'\r');
        let is_escaped = matches!(it, b'"' | b'\\');
        u8::from(is_escaped) + 5 * u8::from(*it < 0x20) - 4 * u8::from(is_short)
    };
    // Many bytes are counted at once, as long as their number fits into a byte.
    text.as_bytes().chunks(32).map(|it| usize::from(it.iter().map(count).sum::<u8>())).sum()
}

/// Returns a hash that is the same for equal values, whatever the order of their keys.
pub fn fingerprint(value: &Value) -> u64 {
    // `DefaultHasher` has fixed keys, unlike the hasher of a map: the same value always has the same hash.
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 'n'.hash(&mut hasher),
        Value::Bool(it) => ('b', it).hash(&mut hasher),
        // By its text: [`equal`] treats `1` and `1.0` as equal, but a server does not convert one into the other.
        Value::Number(it) => ('d', it.to_string()).hash(&mut hasher),
        Value::String(it) => ('s', it).hash(&mut hasher),
        Value::Array(items) => {
            ('a', items.len()).hash(&mut hasher);
            for item in items {
                fingerprint(item).hash(&mut hasher);
            }
        }
        Value::Object(fields) => return fingerprint_of(fields.iter(), |(_, it)| fingerprint(it)),
    }
    hasher.finish()
}

/// Returns the hash of a map with these fields; `of_value` returns those of their values.
pub fn fingerprint_of<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    of_value: impl Fn((&String, &Value)) -> u64,
) -> u64 {
    let (mut count, mut sum) = (0_usize, 0_u64);
    for field in fields {
        let mut hasher = DefaultHasher::new();
        (field.0, of_value(field)).hash(&mut hasher);
        // A sum does not depend on the order.
        (count, sum) = (count + 1, sum.wrapping_add(hasher.finish()));
    }
    let mut hasher = DefaultHasher::new();
    ('m', count, sum).hash(&mut hasher);
    hasher.finish()
}

/// Returns whether a value is truthy as in Python: null, false, zero and everything empty are not.
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(it) => !it.is_empty(),
        Value::Array(it) => !it.is_empty(),
        Value::Object(it) => !it.is_empty(),
    }
}

/// Returns compact JSON of printable ASCII, with the keys in their order.
pub fn encode(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// Compares two numbers; booleans are 0 and 1. Exact, even if an integer is too large for a float.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_mixed(a, b.as_f64()?),
        (None, Some(b)) => compare_mixed(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(it) => Some(i128::from(*it)),
        Value::Number(it) => it.as_i128(),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Compares an integer with a float. Integers of JSON have 64 bits here, so the conversion saturates only far outside their range.
fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared separately")]
    let whole = float.trunc() as i128;
    Some(integer.cmp(&whole).then(0.0.partial_cmp(&float.fract())?))
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(it) => text.push_str(if *it { "true" } else { "false" }),
        Value::Number(it) => write_number(text, it),
        Value::String(it) => write_string(text, it),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(text, key);
                text.push(':');
                write_value(text, value);
            }
            text.push('}');
        }
    }
}

fn write_number(text: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => write_float(text, float),
        _ => text.push_str(&number.to_string()),
    }
}

/// Writes the shortest digits that read back as the same float; with an exponent below 1e-4 and from 1e16 on.
fn write_float(text: &mut String, float: f64) {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = float.to_string();
        let suffix = if plain.contains('.') { "" } else { ".0" };
        text.push_str(&plain);
        text.push_str(suffix);
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write_infallible(text, format_args!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for symbol in string.chars() {
        match symbol {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            ' '..='~' => text.push(symbol),
            _ => {
                for unit in symbol.encode_utf16(&mut [0; 2]) {
                    write_infallible(text, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    text.push('"');
}

fn write_infallible(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(arguments);
    debug_assert!(written.is_ok(), "a string takes everything");
}

#[cfg(test)]
mod tests;
