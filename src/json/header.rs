//! The header of an object, read without building trees of other parts.
//!
//! Tolerant: a field of an unexpected type counts as absent; of repeated keys the last one is used.

use std::{fmt, mem};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
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
        let mut parsed = ParsedHeader::default();
        let ParsedHeader { header, has_api_version, has_kind } = &mut parsed;
        while let Some(key) = map.next_key()? {
            match key {
                TopKey::ApiVersion => {
                    map.next_value_seed(Lenient(&mut header.api_version))?;
                    *has_api_version = true;
                }
                TopKey::Kind => {
                    map.next_value_seed(Lenient(&mut header.kind))?;
                    *has_kind = true;
                }
                TopKey::Metadata => map.next_value_seed(Lenient(header))?,
                TopKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(parsed)
    }
}

/// A part of a header, which is read in place from one JSON type, and is empty for any other type.
trait HeaderPart {
    /// Removes the content that an earlier value of the same key may have left.
    fn clear(&mut self);

    fn read_text(&mut self, _: &str) {}

    fn read_list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn read_map<'de, A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl HeaderPart for String {
    fn clear(&mut self) {
        self.clear();
    }

    fn read_text(&mut self, text: &str) {
        text.clone_into(self);
    }
}

impl HeaderPart for Option<String> {
    fn clear(&mut self) {
        *self = None;
    }

    fn read_text(&mut self, text: &str) {
        *self = Some(text.to_owned());
    }
}

impl HeaderPart for Vec<String> {
    fn clear(&mut self) {
        self.clear();
    }

    fn read_list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let mut text = None;
        while list.next_element_seed(Lenient(&mut text))?.is_some() {
            self.extend(text.take());
        }
        Ok(())
    }
}

impl HeaderPart for Map<String, Value> {
    fn clear(&mut self) {
        self.clear();
    }

    fn read_map<'de, A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry()? {
            self.insert(key, value);
        }
        Ok(())
    }
}

/// The metadata: all fields except the top-level ones.
impl HeaderPart for Header {
    fn clear(&mut self) {
        let (api_version, kind) = (mem::take(&mut self.api_version), mem::take(&mut self.kind));
        *self = Header { api_version, kind, ..Header::default() };
    }

    fn read_map<'de, A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                MetadataKey::Name => map.next_value_seed(Lenient(&mut self.name))?,
                MetadataKey::Namespace => map.next_value_seed(Lenient(&mut self.namespace))?,
                MetadataKey::Uid => map.next_value_seed(Lenient(&mut self.uid))?,
                MetadataKey::ResourceVersion => {
                    map.next_value_seed(Lenient(&mut self.resource_version))?;
                }
                MetadataKey::CreationTimestamp => {
                    map.next_value_seed(Lenient(&mut self.creation_timestamp))?;
                }
                MetadataKey::DeletionTimestamp => {
                    map.next_value_seed(Lenient(&mut self.deletion_timestamp))?;
                }
                MetadataKey::Finalizers => map.next_value_seed(Lenient(&mut self.finalizers))?,
                MetadataKey::Labels => map.next_value_seed(Lenient(&mut self.labels))?,
                MetadataKey::Annotations => map.next_value_seed(Lenient(&mut self.annotations))?,
                MetadataKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads a part from any JSON.
struct Lenient<'a, P>(&'a mut P);

impl<'de, P: HeaderPart> DeserializeSeed<'de> for Lenient<'_, P> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.clear();
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: HeaderPart> Visitor<'de> for Lenient<'_, P> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.read_text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.read_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.read_map(map)
    }
}
