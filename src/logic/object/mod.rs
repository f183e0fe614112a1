//! An object from the API: bytes until the body is needed.
//!
//! All objects of watch streams are read here, most of them only for the header, so only the header is parsed at once.

pub mod annotations;
pub mod conditions;
pub mod corrupt;
pub mod diff;
pub mod diffbase;
pub mod essence;
pub mod fields;
pub mod hidden;
pub mod hierarchy;
pub mod measure;
pub mod reason;
pub mod reference;
pub mod resource;
pub mod url;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU64,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
pub use kopf_json::{Header, ObjectRef, depth};
use kopf_json::{
    containing,
    header::{self, ParsedHeader},
    managed_fields,
    shared::{self, SharedJson},
    tape::Tape,
    tape_reader, tree,
};
use serde_json::{Map, Value};

/// One object of a resource. The header is always parsed; the body only once, on first use.
#[derive(Debug)]
pub struct Object {
    header: Header,
    raw: Bytes,
    /// Its nesting depth, if that is too deep.
    excess: Option<usize>,
    /// The object in a form that scripts read in place, if one has read it before its tree was needed.
    tape: OnceLock<Arc<Tape>>,
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

impl Object {
    /// Reads the header; the body stays bytes, without managed fields if the text is written as API servers write it.
    ///
    /// # Errors
    /// Fails if the bytes are not a JSON object. Unexpected content inside (null maps, wrong types) is not an error: it counts as
    /// absent.
    pub fn parse(raw: Bytes) -> Result<Self, serde_json::Error> {
        let raw = managed_fields::cut(&raw).map_or(raw, Bytes::from);
        Ok(Object::read(header::header(&raw)?.header, raw))
    }

    /// Reads the header of an item of a list. The object has a separate buffer, with the type of the items if it lacks one.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub fn parse_item(
        item: &[u8],
        (api_version, kind): (&str, &str),
    ) -> Result<Self, serde_json::Error> {
        let cut = managed_fields::cut(item);
        let item = cut.as_deref().unwrap_or(item);
        let ParsedHeader { mut header, has_api_version, has_kind } = header::header(item)?;
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
        let excess = tree::excess(&raw);
        Object { header, raw, excess, tape: OnceLock::new(), body: OnceLock::new() }
    }

    /// Reads all of an object, without its tree. Its bytes keep the managed fields.
    ///
    /// # Errors
    /// Fails as [`tape_reader::read`] does.
    pub fn parse_as_tape(raw: Bytes) -> Result<Self, serde_json::Error> {
        let tape = OnceLock::from(Arc::new(tape_reader::read(&raw)?));
        Ok(Object { tape, ..Object::read(header::header(&raw)?.header, raw) })
    }

    /// Creates an object from a tree, for tests and for computed bodies.
    pub fn from_value(mut body: Value) -> Self {
        managed_fields::take(&mut body);
        Object::of_tree(Arc::new(body))
    }

    /// Creates an object that shares a tree without managed fields.
    pub fn of_tree(body: Arc<Value>) -> Self {
        let header = header::header_of(&body);
        Object {
            header,
            raw: Bytes::new(),
            excess: None,
            tape: OnceLock::new(),
            body: OnceLock::from(body),
        }
    }

    /// Returns the bytes without managed fields, for long-term storage; empty if the object was created from a tree.
    ///
    /// Bytes from the network are a slice of a larger buffer, and a tree takes several times the memory of its JSON.
    pub fn essential_bytes(&self) -> Vec<u8> {
        managed_fields::without(&self.raw).unwrap_or_else(|_| self.raw.to_vec())
    }

    /// Returns the object without what was parsed of its body, which takes several times the memory of its JSON: for long waits.
    #[must_use]
    pub fn unparsed(self: &Arc<Self>) -> Arc<Self> {
        if self.raw.is_empty() || (self.tape.get().is_none() && self.body.get().is_none()) {
            return Arc::clone(self);
        }
        let Object { header, raw, excess, .. } = &**self;
        let (header, raw, excess) = (header.clone(), raw.clone(), *excess);
        Arc::new(Object { header, raw, excess, tape: OnceLock::new(), body: OnceLock::new() })
    }

    /// Returns the header, which was parsed with the object; it does not parse the body.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the size of its JSON in bytes; zero for trees.
    pub fn size(&self) -> usize {
        self.raw.len()
    }

    /// Returns the approximate bytes of memory that it takes: its JSON, and what was parsed of it so far.
    pub fn memory(&self) -> usize {
        let tape = self.tape.get().map_or(0, |it| it.bytes());
        self.size() + tape + self.body.get().map_or(0, |it| shared::bytes_of(it))
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
            if let Some(tape) = self.tape.get() {
                return Arc::new(tape.root().to_value());
            }
            let read = Some(()).filter(|()| self.excess.is_none()).map(|()| tree::body(&self.raw));
            Arc::new(read.and_then(Result::ok).unwrap_or(Value::Null))
        })
    }

    /// Returns the body as scripts read it, with the content of [`Object::body`]: a tree only if there is one already. The form stays the
    /// same from then on.
    pub fn shared_body(&self) -> SharedJson {
        match self.tape() {
            Some(tape) => SharedJson::Tape(Arc::clone(tape)),
            None => SharedJson::Tree(Arc::clone(self.body())),
        }
    }

    fn tape(&self) -> Option<&Arc<Tape>> {
        let has_other = self.tape.get().is_some() || self.body.get().is_some();
        if !has_other && self.excess.is_none() {
            let tape = Arc::new(tape_reader::read(&self.raw).ok()?);
            return Some(self.tape.get_or_init(|| tape));
        }
        self.tape.get()
    }

    /// Returns the bytes of its JSON; empty if the object was created from a tree.
    pub fn raw(&self) -> &[u8] {
        &self.raw
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

    /// Returns whether the body has exactly these top-level fields besides some keys, if that can be determined without building its tree.
    /// The fields of these keys are not compared.
    pub fn has_exactly(&self, fields: &Map<String, Value>, except: &[&str]) -> bool {
        self.excess.is_none() && containing::has_exactly(&self.raw, fields, except)
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

#[cfg(test)]
mod tests;
