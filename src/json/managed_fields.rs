//! Managed fields: every client updates them on every change, and many objects have more bytes of them than of everything else. Operators
//! do not use them, so no tree and no stored text has them.

use std::{borrow::Cow, fmt, ops::Range};

use memchr::memmem;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// The key of managed fields in the metadata.
pub(super) const KEY: &str = "managedFields";

/// Removes the managed fields from a tree. Returns them, if it had any.
pub fn take(body: &mut Value) -> Option<Value> {
    body.get_mut("metadata")?.as_object_mut()?.shift_remove(KEY)
}

/// Returns the managed fields of the object in a JSON text, if it has any.
pub fn of_text(raw: &[u8]) -> Option<Value> {
    memmem::find(raw, b"\"managedFields\"")?;
    take(&mut super::depth::value(raw).ok()?)
}

/// Inserts managed fields into a tree.
pub fn restore(body: &mut Value, fields: Value) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(KEY.to_owned(), fields);
    }
}

/// Returns the same JSON text without the managed fields; only whitespace may change otherwise.
///
/// Works on raw texts: unused parts are only copied.
///
/// # Errors
/// Fails if the text is not an object.
pub fn without(raw: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    if let Some(Range { start, end }) = managed_fields(raw)
        && let (Some(before), Some(after)) = (raw.get(..start), raw.get(end..))
    {
        return Ok([before, after].concat());
    }
    let mut text = Vec::with_capacity(raw.len());
    let Items(body) = serde_json::from_slice(raw)?;
    write_items(&mut text, &body, |text, key, value| {
        let is_metadata = key == "metadata" && value.get().starts_with('{');
        if !is_metadata {
            as_written(text, value);
            return Ok(());
        }
        let Items(mut metadata) = serde_json::from_str(value.get())?;
        metadata.retain(|(it, _)| it != KEY);
        write_items(text, &metadata, |text, _, value| {
            as_written(text, value);
            Ok(())
        })
    })?;
    text.shrink_to_fit();
    Ok(text)
}

/// Returns where the managed fields are, with a comma, if the text is written as API servers write it; an empty range if there are
/// none. The text is JSON.
fn managed_fields(raw: &[u8]) -> Option<Range<usize>> {
    let mut found = memmem::find_iter(raw, b"\"managedFields\"");
    let Some(start) = found.next() else { return Some(0..0) };
    let is_plain = found.next().is_none() && is_in_metadata(raw.get(..start)?);
    let value = raw.get(start..).filter(|_| is_plain)?.strip_prefix(b"\"managedFields\":")?;
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<&RawValue>();
    values.next()?.ok()?;
    let end = raw.len() - value.len() + values.byte_offset();
    match (raw.get(start.checked_sub(1)?)?, raw.get(end)?) {
        (b',', _) => Some(start - 1..end),
        (b'{', b',') => Some(start..end + 1),
        (b'{', b'}') => Some(start..end),
        _ => None,
    }
}

/// Returns whether the JSON text after this beginning is directly in `metadata`.
fn is_in_metadata(beginning: &[u8]) -> bool {
    let (mut open, mut last) = (0_usize, 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (index, byte) in beginning.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' if !is_quoted => {
                last = if open == 1 { index } else { last };
                open += 1;
            }
            b'}' | b']' if !is_quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    let key = beginning.get(..last).unwrap_or_default();
    open == 2 && !is_quoted && key.ends_with(b"\"metadata\":") && !key.ends_with(b"\\\"metadata\":")
}

/// The items of a map in their raw form.
struct Items<'a>(Vec<RawField<'a>>);

type RawField<'a> = (Cow<'a, str>, &'a RawValue);

fn write_items(
    text: &mut Vec<u8>,
    items: &[RawField<'_>],
    write: impl Fn(&mut Vec<u8>, &str, &RawValue) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    text.push(b'{');
    for (index, (key, value)) in items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, key)?;
        text.push(b':');
        write(text, key, value)?;
    }
    text.push(b'}');
    Ok(())
}

fn as_written(text: &mut Vec<u8>, value: &RawValue) {
    text.extend_from_slice(value.get().as_bytes());
}

struct ItemsVisitor;

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ItemsVisitor)
    }
}

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Items<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = map.next_entry()? {
            items.push(item);
        }
        Ok(Items(items))
    }
}
