//! An object from the API: bytes until the body is needed.
//!
//! All objects of watch streams are read here, most of them only for the header, so only the header is parsed at once.

pub mod annotations;
pub mod conditions;
mod containing;
pub mod corrupt;
pub mod depth;
pub mod diff;
pub mod diffbase;
pub mod essence;
pub mod fields;
pub mod hidden;
pub mod hierarchy;
pub(super) mod read;
pub mod reason;
pub mod reference;
pub mod resource;
pub(super) mod tree;
pub mod url;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU64,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::logic::object::resource::Resource;

/// One object of a resource. The header is always parsed; the body only once, on first use.
#[derive(Debug)]
pub struct Object {
    header: Header,
    raw: Bytes,
    /// Its nesting depth, if that is too deep.
    excess: Option<usize>,
    body: OnceLock<Arc<Value>>,
}

/// The reason why the body of an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The object is nested deeper than [`depth::DEPTH_MAX`].
    #[error("it is nested {0} levels deep; at most {max} are supported", max = depth::DEPTH_MAX)]
    Depth(usize),
    /// The JSON is not of the form that API servers send.
    #[error("its JSON is damaged")]
    Damaged,
}

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

impl Object {
    /// Reads the header; the body stays bytes.
    ///
    /// # Errors
    /// Fails if the bytes are not a JSON object. Unexpected content inside (null maps, wrong types) is not an error: it counts as
    /// absent.
    pub fn parse(raw: Bytes) -> Result<Self, serde_json::Error> {
        Ok(Object::read(read::header(&raw)?.header, raw))
    }

    /// Reads the header of an item of a list. The object has a separate buffer, with the type of the items if it lacks one.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub fn parse_item(
        item: &[u8],
        (api_version, kind): (&str, &str),
    ) -> Result<Self, serde_json::Error> {
        let read::ParsedHeader { mut header, has_api_version, has_kind } = read::header(item)?;
        let mut head = String::from("{");
        if !has_api_version && !api_version.is_empty() {
            api_version.clone_into(&mut header.api_version);
            head = format!("{head}\"apiVersion\":{},", Value::from(api_version));
        }
        if !has_kind && !kind.is_empty() {
            kind.clone_into(&mut header.kind);
            head = format!("{head}\"kind\":{},", Value::from(kind));
        }
        let rest = item.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
        if rest.trim_ascii_start().starts_with(b"}") {
            head.truncate(head.trim_end_matches(',').len());
        }
        Ok(Object::read(header, Bytes::from([head.as_bytes(), rest].concat())))
    }

    fn read(header: Header, raw: Bytes) -> Self {
        let excess = read::excess(&raw);
        Object { header, raw, excess, body: OnceLock::new() }
    }

    /// Creates an object from a tree, for tests and for computed bodies.
    pub fn from_value(mut body: Value) -> Self {
        read::take_managed_fields(&mut body);
        Object::of_tree(Arc::new(body))
    }

    /// Creates an object that shares a tree without managed fields.
    pub fn of_tree(body: Arc<Value>) -> Self {
        let header = read::header_of(&body);
        Object { header, raw: Bytes::new(), excess: None, body: OnceLock::from(body) }
    }

    /// Returns the bytes without managed fields, for long-term storage; empty if the object was created from a tree.
    ///
    /// Bytes from the network are a slice of a larger buffer, and a tree takes several times the memory of its JSON.
    pub fn essential_bytes(&self) -> Vec<u8> {
        read::without_managed_fields(&self.raw).unwrap_or_else(|_| self.raw.to_vec())
    }

    /// Returns the header, which was parsed with the object; it does not parse the body.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the size of its JSON in bytes; zero for trees.
    pub fn size(&self) -> usize {
        self.raw.len()
    }

    /// Returns a hash of its JSON: objects with the same JSON are equal. `None` for trees.
    pub fn fingerprint(&self) -> Option<NonZeroU64> {
        let mut hasher = DefaultHasher::new();
        self.raw.hash(&mut hasher);
        (!self.raw.is_empty()).then(|| NonZeroU64::MIN | hasher.finish())
    }

    /// Returns the tree, parsed on first use. It never contains `metadata.managedFields`.
    ///
    /// Null if it cannot be read: check [`Object::problem`] first, and decide nothing from such a body.
    pub fn body(&self) -> &Arc<Value> {
        self.body.get_or_init(|| {
            let read = Some(()).filter(|()| self.excess.is_none()).map(|()| read::body(&self.raw));
            Arc::new(read.and_then(Result::ok).unwrap_or(Value::Null))
        })
    }

    /// Returns the tree, without a copy if nothing else refers to it.
    pub fn into_body(self) -> Value {
        let body = Arc::clone(self.body());
        drop(self);
        Arc::unwrap_or_clone(body)
    }

    /// Returns whether the body has all of these fields with these values, if that can be determined without building its tree; maps may
    /// have further fields.
    pub fn is_known_to_contain(&self, part: &Map<String, Value>) -> bool {
        containing::contains(&self.raw, part)
    }

    /// Returns why the body cannot be read, if it cannot. Damaged JSON is detected only after a call of [`Object::body`].
    pub fn problem(&self) -> Option<Unreadable> {
        if let Some(depth) = self.excess {
            return Some(Unreadable::Depth(depth));
        }
        // Objects are maps: null stands for one that could not be read.
        let is_damaged = !self.raw.is_empty() && self.body.get().is_some_and(|it| it.is_null());
        is_damaged.then_some(Unreadable::Damaged)
    }
}

impl Header {
    /// Reads the header of the object in this JSON text.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub fn read(raw: &[u8]) -> Result<Self, serde_json::Error> {
        read::header(raw).map(|it| it.header)
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

    /// Returns the identity of an object of this resource: items of lists may lack their kind.
    pub fn reference_in(&self, resource: &Resource) -> ObjectRef {
        let mut reference = self.reference();
        if reference.kind.is_empty() {
            reference.kind.clone_from(&resource.kind);
        }
        if reference.api_version.is_empty() {
            reference.api_version = resource.api_version();
        }
        reference
    }
}

#[cfg(test)]
mod tests;
