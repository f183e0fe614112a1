//! An object as it is stored: its JSON text, and the few fields that are needed of every object.
//!
//! Text takes a fifth of the memory of a tree, and is copied into responses and watch events as it is. `apiVersion` and `kind` are
//! not part of it: they depend on the version that a client requests, and items in lists of native kinds leave them out.

use bytes::Bytes;
use serde_json::Value;

use crate::{object, request::json};

/// One version of an object. It is never changed, only replaced.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) head: Head,
    /// The version whose fields it has, such as `v1`, followed by all fields but `apiVersion` and `kind`:
    /// `"metadata":{…},"spec":{…}}`, without the opening brace. One allocation for both, because there may be many objects.
    text: Bytes,
    /// The length of the version in bytes; 0 if the version is not known.
    version_len: u8,
}

/// The fields that lists, watches and deletions need without parsing the body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Head {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) revision: u64,
    /// A slice of pairs, because a tree would take half a kilobyte for one label.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
}

impl Stored {
    /// Serializes a tree, without its `apiVersion` and `kind`.
    pub(crate) fn of(object: &Value) -> Self {
        let meta = |field| object::meta(object, field);
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels =
            labels.filter_map(|(name, it)| Some((name.as_str().into(), it.as_str()?.into())));
        let head = Head {
            namespace: meta("namespace").into(),
            name: meta("name").into(),
            uid: meta("uid").into(),
            revision: meta("resourceVersion").parse().unwrap_or(0),
            labels: labels.collect(),
        };
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let (version, version_len) = match version.len().try_into() {
            Ok(length) => (version, length),
            Err(_) => ("", 0),
        };
        Self { head, text: text_of(version, object), version_len }
    }

    /// Returns the fields as JSON, without the opening brace; see [`Stored::text`].
    fn fields(&self) -> &[u8] {
        self.text.get(usize::from(self.version_len)..).unwrap_or_default()
    }

    /// Returns the version whose fields it has, such as `v1`; empty if it is not known.
    pub(crate) fn version(&self) -> &str {
        let version = self.text.get(..usize::from(self.version_len)).unwrap_or_default();
        str::from_utf8(version).unwrap_or_default()
    }

    /// Returns the JSON text with this `apiVersion` and `kind`.
    pub(crate) fn text(&self, api_version: &str, kind: &str) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.text.len() + api_version.len() + kind.len() + 32);
        self.write(&mut text, Some((api_version, kind)));
        text
    }

    /// Appends the JSON text, with `apiVersion` and `kind` if they are given.
    pub(crate) fn write(&self, text: &mut Vec<u8>, named: Option<(&str, &str)>) {
        text.push(b'{');
        if let Some((api_version, kind)) = named {
            // Neither has a character that JSON escapes: both are checked names.
            text.extend_from_slice(br#""apiVersion":""#);
            text.extend_from_slice(api_version.as_bytes());
            text.extend_from_slice(br#"","kind":""#);
            text.extend_from_slice(kind.as_bytes());
            text.push(b'"');
            if self.fields() != b"}" {
                text.push(b',');
            }
        }
        text.extend_from_slice(self.fields());
    }

    /// Returns the object as a tree, with this `apiVersion` and `kind`.
    pub(crate) fn tree(&self, api_version: &str, kind: &str) -> Value {
        json::stored(&self.text(api_version, kind)).unwrap_or_default()
    }

    /// Returns the object as a tree, without its kind, and with its version, without the group, as `apiVersion`.
    pub(crate) fn own_tree(&self) -> Value {
        self.tree(self.version(), "")
    }

    /// Returns the length of the JSON text in bytes.
    pub(crate) fn len(&self) -> usize {
        self.fields().len()
    }
}

fn text_of(version: &str, object: &Value) -> Bytes {
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(version.as_bytes());
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"))
    {
        if text.len() > version.len() {
            text.push(b',');
        }
        // Serializing a tree into memory cannot fail.
        drop(serde_json::to_writer(&mut text, name));
        text.push(b':');
        drop(serde_json::to_writer(&mut text, value));
    }
    text.push(b'}');
    text.shrink_to_fit();
    text.into()
}
