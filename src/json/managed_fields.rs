//! Managed fields: every client updates them on every change, and many objects have more bytes of them than of everything else. Operators
//! do not use them, so they are cut off when an object arrives, and no tree and no stored text has them.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2, memmem};
use serde::de::Error as _;
use serde_json::{Error, Value, value::RawValue};

use super::{depth, text};

/// The key of managed fields in the metadata.
pub(super) const KEY: &str = "managedFields";

/// Removes the managed fields from a tree. Returns them, if it had any.
pub fn take(body: &mut Value) -> Option<Value> {
    body.get_mut("metadata")?.as_object_mut()?.shift_remove(KEY)
}

/// Returns the managed fields of the object in a JSON text, if it has any.
pub fn of_text(raw: &[u8]) -> Option<Value> {
    memmem::find(raw, b"\"managedFields\"")?;
    take(&mut depth::value(raw).ok()?)
}

/// Inserts managed fields into a tree.
pub fn restore(body: &mut Value, fields: Value) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(KEY.to_owned(), fields);
    }
}

/// Returns the same text without the managed fields; `None` if it has none, or is not written as API servers write it. The text is JSON.
///
/// Whatever reads the text afterwards has nothing to skip.
pub fn cut(raw: &[u8]) -> Option<Vec<u8>> {
    let Range { start, end } = managed_fields(raw).filter(|it| !it.is_empty())?;
    Some([raw.get(..start)?, raw.get(end..)?].concat())
}

/// Returns the same JSON without the managed fields; everything else is only copied if the text is written as API servers write it.
///
/// # Errors
/// Fails if the text is not an object, or is nested too deep.
pub fn without(raw: &[u8]) -> Result<Vec<u8>, Error> {
    if let Some(Range { start, end }) = managed_fields(raw)
        && let (Some(before), Some(after)) = (raw.get(..start), raw.get(end..))
    {
        return Ok([before, after].concat());
    }
    let mut body = depth::value(raw)?;
    take(&mut body);
    if body.is_object() { Ok(text(&body)) } else { Err(Error::custom("expected an object")) }
}

/// Returns where the managed fields are, with a comma, if the text is written as API servers write it; an empty range if there are
/// none. The text is JSON.
fn managed_fields(raw: &[u8]) -> Option<Range<usize>> {
    let mut found = memmem::find_iter(raw, b"\"managedFields\"");
    let Some(start) = found.next() else { return Some(0..0) };
    let is_plain = found.next().is_none() && is_in_metadata(raw.get(..start)?);
    let value = raw.get(start..).filter(|_| is_plain)?.strip_prefix(b"\"managedFields\":")?;
    let end = raw.len() - value.len() + length_of_list(value).or_else(|| length(value))?;
    match (raw.get(start.checked_sub(1)?)?, raw.get(end)?) {
        (b',', _) => Some(start - 1..end),
        (b'{', b',') => Some(start..end + 1),
        (b'{', b'}') => Some(start..end),
        _ => None,
    }
}

/// Returns the length of the list at the start of a JSON text. `None` if that takes more than a search: the list has other lists or
/// escaped characters in it.
fn length_of_list(text: &[u8]) -> Option<usize> {
    let length = memchr(b']', text)? + 1;
    let items = text.get(..length)?.strip_prefix(b"[")?;
    // Without escapes, an even number of quotation marks means that the bracket is in no string.
    let is_even = memchr_iter(b'"', items).count().is_multiple_of(2);
    let is_end = is_even && memchr2(b'[', b'\\', items).is_none();
    is_end.then_some(length)
}

/// Returns the length of the value at the start of a JSON text.
fn length(text: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// Returns whether the JSON text after this beginning is directly in `metadata`.
fn is_in_metadata(beginning: &[u8]) -> bool {
    let (mut open, mut last, mut index) = (0_usize, 0, 0);
    while let Some(byte) = beginning.get(index) {
        match byte {
            b'"' => match string(beginning.get(index..).unwrap_or_default()) {
                Some(length) => index += length - 1,
                None => return false,
            },
            b'{' | b'[' => {
                last = if open == 1 { index } else { last };
                open += 1;
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        index += 1;
    }
    let key = beginning.get(..last).unwrap_or_default();
    open == 2 && key.ends_with(b"\"metadata\":") && !key.ends_with(b"\\\"metadata\":")
}

/// Returns the length of the string at the start of a JSON text, with its quotation marks; `None` if it has no end.
fn string(text: &[u8]) -> Option<usize> {
    let mut length = 1;
    loop {
        let found = memchr2(b'"', b'\\', text.get(length..)?)?;
        length += found + 1;
        if text.get(length - 1) == Some(&b'"') {
            return Some(length);
        }
        // The escaped character.
        length += 1;
    }
}
