//! The header of an object, read without building trees of other parts.
//!
//! Tolerant: a field of an unexpected type counts as absent; of repeated keys the last one is used.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::depth;

/// The fields that every event needs: to find the queue of the object and to filter by metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// `apiVersion`; empty when absent.
    pub api_version: String,
    /// `kind`; empty when absent.
    pub kind: String,
    /// `metadata.name`
    pub name: Option<String>,
    /// `metadata.namespace`
    pub namespace: Option<String>,
    /// `metadata.uid`
    pub uid: Option<String>,
    /// `metadata.resourceVersion`
    pub resource_version: Option<String>,
    /// `metadata.creationTimestamp`
    pub creation_timestamp: Option<String>,
    /// `metadata.deletionTimestamp`; an empty string counts as present.
    pub deletion_timestamp: Option<String>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
    /// `metadata.labels`
    pub labels: Map<String, Value>,
    /// `metadata.annotations`
    pub annotations: Map<String, Value>,
}

/// The identity of an object in logs and in posted events.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// The name; empty when absent.
    pub name: String,
    /// The uid; empty when absent.
    pub uid: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
}

/// A header, and which of its top-level fields the object has, whatever their values.
#[derive(Debug, Default)]
pub struct ParsedHeader {
    /// The header.
    pub header: Header,
    /// Whether the object has an `apiVersion`.
    pub has_api_version: bool,
    /// Whether the object has a `kind`.
    pub has_kind: bool,
}

/// Reads the header; the rest is only checked to be JSON.
///
/// # Errors
/// Fails if the text is not an object.
pub fn header(raw: &[u8]) -> Result<ParsedHeader, serde_json::Error> {
    depth::read(raw, |it| it.deserialize_map(HeaderVisitor))
}

/// Returns the header of a tree; empty if it is not a map.
pub fn header_of(body: &Value) -> Header {
    body.deserialize_map(HeaderVisitor).map(|it| it.header).unwrap_or_default()
}

impl Header {
    /// Reads the header of the object in this JSON text.
    ///
    /// # Errors
    /// Fails if the text is not an object.
    pub fn read(raw: &[u8]) -> Result<Self, serde_json::Error> {
        header(raw).map(|it| it.header)
    }

    /// Returns whether a deleted object has no finalizers left. The server creates no separate version for this: only the deletion
    /// follows.
    pub fn is_released(&self) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.is_empty()
    }

    /// Returns the identity for logs.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone().unwrap_or_default(),
            uid: self.uid.clone().unwrap_or_default(),
            namespace: self.namespace.clone(),
        }
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
