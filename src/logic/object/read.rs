//! Parses objects in one pass, without building trees of unused parts.
//!
//! Tolerant: a field of an unexpected type counts as absent; of repeated keys the last one is used.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Range};

use memchr::memmem;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::{
    Header, depth,
    tree::{self, MANAGED_FIELDS},
};

/// A header, and which of its top-level fields the object has, whatever their values.
#[derive(Default)]
pub(super) struct ParsedHeader {
    pub(super) header: Header,
    pub(super) has_api_version: bool,
    pub(super) has_kind: bool,
}

/// Reads the header; the rest is only checked to be JSON. Fails if the text is not an object.
pub(super) fn header(raw: &[u8]) -> Result<ParsedHeader, serde_json::Error> {
    depth::read(raw, |it| it.deserialize_map(HeaderVisitor))
}

/// Returns the nesting depth if it is too deep. Managed fields repeat the nesting, and are not read.
pub(super) fn excess(raw: &[u8]) -> Option<usize> {
    if !depth::may_exceed(raw, depth::DEPTH_MAX) || depth::depth(raw) <= depth::DEPTH_MAX {
        return None;
    }
    let depth = match without_managed_fields(raw) {
        Ok(text) => depth::depth(&text),
        Err(_) => depth::depth(raw),
    };
    Some(depth).filter(|it| *it > depth::DEPTH_MAX)
}

/// Returns the header of a tree; empty if it is not a map.
pub(super) fn header_of(body: &Value) -> Header {
    body.deserialize_map(HeaderVisitor).map(|it| it.header).unwrap_or_default()
}

/// Returns the tree without managed fields.
pub(super) fn body(raw: &[u8]) -> Result<Value, serde_json::Error> {
    match depth::read(raw, |it| tree::whole(it)) {
        // The managed fields may be the reason.
        Err(_) if depth::may_exceed(raw, depth::DEPTH_MAX) => {
            depth::read(&without_managed_fields(raw)?, |it| tree::whole(it))
        }
        read => read,
    }
}

/// Removes the managed fields from a tree. Returns them, if it had any.
pub(in crate::logic) fn take_managed_fields(body: &mut Value) -> Option<Value> {
    body.get_mut("metadata")?.as_object_mut()?.shift_remove(MANAGED_FIELDS)
}

/// Inserts managed fields into a tree.
pub(in crate::logic) fn restore_managed_fields(body: &mut Value, fields: Value) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(MANAGED_FIELDS.to_owned(), fields);
    }
}

/// Returns the same JSON text without the managed fields; only whitespace may change otherwise.
///
/// Works on raw texts: unused parts are only copied.
pub(super) fn without_managed_fields(raw: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
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
        metadata.retain(|(it, _)| it != MANAGED_FIELDS);
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

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum TopKey {
    ApiVersion,
    Kind,
    Metadata,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MetadataKey {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    CreationTimestamp,
    DeletionTimestamp,
    Finalizers,
    Labels,
    Annotations,
    #[serde(other)]
    Other,
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = ParsedHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of Kubernetes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedHeader, A::Error> {
        let ParsedHeader { mut header, mut has_api_version, mut has_kind } =
            ParsedHeader::default();
        while let Some(key) = map.next_key()? {
            match key {
                TopKey::ApiVersion => {
                    (header.api_version, has_api_version) =
                        (text(&mut map)?.unwrap_or_default(), true);
                }
                TopKey::Kind => {
                    (header.kind, has_kind) = (text(&mut map)?.unwrap_or_default(), true);
                }
                TopKey::Metadata => {
                    let Metadata(metadata) = part(&mut map)?;
                    let (api_version, kind) = (header.api_version, header.kind);
                    header = Header { api_version, kind, ..metadata };
                }
                TopKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(ParsedHeader { header, has_api_version, has_kind })
    }
}

/// A part of a header that is read from one JSON type, and is empty for any other type.
trait HeaderPart: Default {
    fn of_text(_: &str) -> Self {
        Self::default()
    }

    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

#[derive(Default)]
struct StringPart(Option<String>);

#[derive(Default)]
struct StringListPart(Vec<String>);

#[derive(Default)]
struct MapPart(Map<String, Value>);

/// All fields of a header except the top-level ones.
#[derive(Default)]
struct Metadata(Header);

impl HeaderPart for StringPart {
    fn of_text(text: &str) -> Self {
        StringPart(Some(text.to_owned()))
    }
}

impl HeaderPart for StringListPart {
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(Lenient(StringPart(text))) = list.next_element()? {
            texts.extend(text);
        }
        Ok(StringListPart(texts))
    }
}

impl HeaderPart for MapPart {
    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut entries = Map::new();
        while let Some((key, value)) = map.next_entry()? {
            entries.insert(key, value);
        }
        Ok(MapPart(entries))
    }
}

impl HeaderPart for Metadata {
    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut header = Header::default();
        while let Some(key) = map.next_key()? {
            match key {
                MetadataKey::Name => header.name = text(&mut map)?,
                MetadataKey::Namespace => header.namespace = text(&mut map)?,
                MetadataKey::Uid => header.uid = text(&mut map)?,
                MetadataKey::ResourceVersion => header.resource_version = text(&mut map)?,
                MetadataKey::CreationTimestamp => header.creation_timestamp = text(&mut map)?,
                MetadataKey::DeletionTimestamp => header.deletion_timestamp = text(&mut map)?,
                MetadataKey::Finalizers => {
                    header.finalizers = part::<StringListPart, A>(&mut map)?.0;
                }
                MetadataKey::Labels => header.labels = part::<MapPart, A>(&mut map)?.0,
                MetadataKey::Annotations => header.annotations = part::<MapPart, A>(&mut map)?.0,
                MetadataKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Metadata(header))
    }
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<String>, A::Error> {
    part::<StringPart, A>(map).map(|it| it.0)
}

fn part<'de, P: HeaderPart, A: MapAccess<'de>>(map: &mut A) -> Result<P, A::Error> {
    map.next_value().map(|Lenient(it)| it)
}

/// Deserializes a part from any JSON.
struct Lenient<P>(P);

impl<'de, P: HeaderPart> Deserialize<'de> for Lenient<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData)).map(Lenient)
    }
}

struct LenientVisitor<P>(PhantomData<P>);

impl<'de, P: HeaderPart> Visitor<'de> for LenientVisitor<P> {
    type Value = P;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<P, E> {
        Ok(P::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<P, E> {
        Ok(P::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<P, E> {
        Ok(P::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<P, E> {
        Ok(P::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<P, E> {
        Ok(P::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<P, E> {
        Ok(P::of_text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<P, A::Error> {
        P::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<P, A::Error> {
        P::of_map(map)
    }
}
