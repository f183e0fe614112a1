//! Parsing of JSON as the server does it.
//!
//! Bytes that are not UTF-8 and lone surrogates become U+FFFD, the last of equal keys wins, and floats without a fraction become
//! integers.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::refusal::path::{push_field, push_item};

/// The maximum depth of nested lists and maps: enough for every known schema and object, and safe for every recursive function.
pub(crate) const DEPTH_MAX: usize = 127;

/// Parses a complete text.
///
/// # Errors
/// Returns the message with its position: `expected value at line 1 column 5`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    parse_strictly(bytes, &mut Vec::new())
}

/// Parses a complete text, and adds the paths of all duplicate fields to `repeated`.
pub(crate) fn parse_strictly(bytes: &[u8], repeated: &mut Vec<String>) -> Result<Value, String> {
    let text = well_formed(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let seed = Reading { path: &mut String::new(), repeated };
    let value = seed.deserialize(&mut deserializer).map_err(|it| it.to_string())?;
    deserializer.end().map_err(|it| it.to_string())?;
    Ok(value)
}

/// Parses the first value of a text and ignores the rest, as the decoder of strategic merge patches does.
pub(crate) fn parse_first(bytes: &[u8]) -> Result<Value, String> {
    let text = well_formed(bytes);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let seed = Reading { path: &mut String::new(), repeated: &mut Vec::new() };
    seed.deserialize(&mut deserializer).map_err(|it| it.to_string())
}

/// Builds a value, and records duplicate fields.
struct Reading<'a> {
    path: &'a mut String,
    repeated: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E: serde::de::Error>(self, it: u64) -> Result<Value, E> {
        Ok(settled(Number::from(it)))
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        let number = Number::from_f64(it).map(settled);
        number.ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let length = self.path.len();
        let mut list = Vec::new();
        push_item(self.path, 0);
        while let Some(item) =
            items.next_element_seed(Reading { path: self.path, repeated: self.repeated })?
        {
            list.push(item);
            self.path.truncate(length);
            push_item(self.path, list.len());
        }
        self.path.truncate(length);
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let length = self.path.len();
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            push_field(self.path, &key);
            let value =
                entries.next_value_seed(Reading { path: self.path, repeated: self.repeated })?;
            if map.insert(key, value).is_some() && !self.repeated.contains(self.path) {
                self.repeated.push(self.path.clone());
            }
            self.path.truncate(length);
        }
        Ok(map.into())
    }
}

fn settled(number: Number) -> Value {
    whole(&number).unwrap_or(number).into()
}

/// Parses JSON that this server has written. Accepted values have up to [`DEPTH_MAX`] levels; stored texts have some more around
/// them: in lists, in managed fields, and in files.
pub(crate) fn stored<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, serde_json::Error> {
    let whole = |mut deserializer: serde_json::Deserializer<serde_json::de::SliceRead<'a>>| {
        let value = T::deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    };
    whole(serde_json::Deserializer::from_slice(text)).or_else(|error| {
        // Files may have been edited.
        if text_depth(text) > DEPTH_MAX * 2 {
            return Err(error);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        deserializer.disable_recursion_limit();
        whole(deserializer)
    })
}

/// Returns the depth of nested lists and maps in a text. It does not recurse.
fn text_depth(text: &[u8]) -> usize {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' if !is_quoted => {
                open = open.saturating_add(1);
                deepest = deepest.max(open);
            }
            b'}' | b']' if !is_quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the type of a value for messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the depth of nested lists and maps in a value. It does not recurse.
pub(crate) fn depth(value: &Value) -> usize {
    extent(value).0
}

/// Returns the depth and the number of values. It does not recurse.
pub(crate) fn extent(value: &Value) -> (usize, usize) {
    let (mut deepest, mut count) = (0, 0_usize);
    let mut open = vec![(value, 0_usize)];
    while let Some((value, above)) = open.pop() {
        let own = above + 1;
        count = count.saturating_add(1);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, own))),
            Value::Object(fields) => open.extend(fields.values().map(|it| (it, own))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        }
        deepest = deepest.max(own);
    }
    (deepest, count)
}

/// Converts floats without a fraction to integers.
pub(crate) fn settle_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Object(fields) => fields.values_mut().for_each(settle_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() {
        return None;
    }
    // A number beyond i64 is a float in Go; a float of 2^53 and more is inexact anyway.
    let float = number.as_f64()?;
    if number.is_u64() {
        return Number::from_f64(float);
    }
    let exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    exact.then(|| Number::from(float as i64))
}

/// Replaces everything that is not valid Unicode, in bytes and in escapes.
fn well_formed(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains("\\u") {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(found) = rest.find('\\') {
        let (before, from) = rest.split_at(found);
        clean.push_str(before);
        let taken = escape(from, &mut clean);
        rest = from.get(taken..).unwrap_or_default();
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Copies the escape at the start of `from`. Returns its length in bytes.
fn escape(from: &str, clean: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = from.get(at..).filter(|it| it.starts_with("\\u"))?.get(2..6)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (length, good) = match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
        (Some(0xD800..=0xDFFF), _) => (6, false),
        (Some(_), _) => (6, true),
        // A simple escape, or an invalid one, which the parser refuses.
        (None, _) => (2, true),
    };
    clean.push_str(if good { from.get(..length).unwrap_or(from) } else { "\u{FFFD}" });
    length
}

/// Serializes JSON with the keys of all maps sorted.
pub(crate) fn sorted_json(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}
