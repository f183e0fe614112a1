//! Data that scripts share and modify in place.

use std::{
    collections::BTreeMap,
    mem,
    ops::{Deref, DerefMut},
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

use crate::heap;

/// A document is small if it has at most `SMALL_FIELDS` fields and no string longer than `SMALL_TEXT` bytes.
const SMALL_FIELDS: usize = 8;
const SMALL_TEXT: usize = 64;

/// A JSON object behind a lock: handles in scripts read and write it by path. Clones share the same document.
///
/// A document that was made from another one shares its maps, until one of the two documents gets another value in that field.
/// Lists are copied: Rhai modifies a list by writing a new one, which cannot be distinguished from another value.
///
/// There may be many thousands of documents, most of them empty or with one or two numbers, and unread for days: small ones are
/// then kept as JSON text.
#[derive(Clone, Debug, Default)]
pub struct SharedDocument(Arc<Shared>);

/// A reference to a [`SharedDocument`] that does not keep it alive. While this exists, no other document gets its address.
#[derive(Clone, Debug)]
pub struct WeakDocument(Weak<Shared>);

/// Data that the process keeps about an object for its scripts; also the operator's own memo.
pub type Memo = SharedDocument;

#[derive(Debug, Default)]
struct Shared {
    content: Mutex<DocumentContent>,
    /// Held while one of several documents reads or writes what they share.
    turn: Arc<Mutex<()>>,
}

#[derive(Debug)]
enum DocumentContent {
    /// As JSON text; empty for an empty document.
    Packed(Box<[u8]>),
    Open(Box<OpenDocument>),
}

#[derive(Debug, Default)]
struct OpenDocument {
    /// Null where the value is shared, except while the document is locked.
    fields: Map<String, Value>,
    shared: BTreeMap<String, Arc<Mutex<Value>>>,
}

/// The fields of a locked document.
pub struct LockedFields<'a> {
    content: MutexGuard<'a, DocumentContent>,
    /// Taken out of the content, and put back on drop.
    open: OpenDocument,
    /// Dropped after the shared values were put back.
    _turn: Option<MutexGuard<'a, ()>>,
}

impl SharedDocument {
    /// Creates a document with this content.
    pub fn new(content: Map<String, Value>) -> Self {
        let mut place = DocumentContent::default();
        place.close(OpenDocument { fields: content, shared: BTreeMap::new() });
        SharedDocument(Arc::new(Shared { content: Mutex::new(place), turn: Arc::default() }))
    }

    /// Locks the content. Hold the guard for a few lines only, never across an await, and never together with that of another
    /// document.
    pub fn lock(&self) -> LockedFields<'_> {
        let mut content = taken(&self.0.content);
        let mut open = content.open();
        let turn = (!open.shared.is_empty()).then(|| taken(&self.0.turn));
        open.exchange();
        LockedFields { content, open, _turn: turn }
    }

    /// Locks the content to change the field at this path. A top-level field is no longer shared afterwards.
    pub fn lock_for(&self, path: &[String]) -> LockedFields<'_> {
        let mut fields = self.lock();
        if fields.is_empty() {
            // Most memos get only a few fields, and the usual growth would reserve space for more.
            *fields = Map::with_capacity(1);
        }
        if let [key] = path
            && let Some(slot) = fields.open.shared.remove(key)
        {
            let value = fields.get(key).cloned().unwrap_or_default();
            *taken(&slot) = value;
        }
        fields
    }

    /// Returns a new document with the same content: a shallow copy, like Kopf's memos.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut content = taken(&self.0.content);
        let turn = Arc::clone(&self.0.turn);
        let mut copy = DocumentContent::default();
        if !content.is_empty() {
            let mut open = content.open();
            let _turn = taken(&turn);
            let OpenDocument { fields, shared } = &mut open;
            for (key, value) in fields.iter_mut().filter(|(_, it)| it.is_object()) {
                shared.insert(key.clone(), Arc::new(Mutex::new(value.take())));
            }
            copy.close(OpenDocument { fields: fields.clone(), shared: shared.clone() });
            content.close(open);
        }
        SharedDocument(Arc::new(Shared { content: Mutex::new(copy), turn }))
    }

    /// Returns whether both are the same document.
    pub fn is(&self, other: &SharedDocument) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the document has no fields.
    pub fn is_empty(&self) -> bool {
        taken(&self.0.content).is_empty()
    }

    /// Returns whether the document is empty and has no other owner, so that it can be dropped and created again when needed.
    pub fn is_spare(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0 && self.is_empty()
    }

    /// Packs a small document while it is not in use.
    pub fn rest(&self) {
        // The memory that scripts are charged for does not depend on how their data are kept meanwhile.
        heap::apart(|| taken(&self.0.content).pack());
    }

    /// Returns a number that identifies the document while it exists, for engines that keep more than data alongside it.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns a weak reference to this document.
    pub fn downgrade(&self) -> WeakDocument {
        WeakDocument(Arc::downgrade(&self.0))
    }
}

impl DocumentContent {
    fn is_empty(&self) -> bool {
        match self {
            DocumentContent::Packed(text) => text.is_empty(),
            DocumentContent::Open(open) => open.fields.is_empty(),
        }
    }

    /// Takes the content out, to be put back by [`DocumentContent::close`].
    fn open(&mut self) -> OpenDocument {
        match self {
            DocumentContent::Packed(text) if text.is_empty() => OpenDocument::default(),
            // This text was written by `pack`.
            DocumentContent::Packed(text) => heap::apart(|| {
                let fields = serde_json::from_slice(text).unwrap_or_default();
                OpenDocument { fields, shared: BTreeMap::new() }
            }),
            DocumentContent::Open(open) => mem::take(open),
        }
    }

    fn close(&mut self, open: OpenDocument) {
        match self {
            _ if open.fields.is_empty() => *self = DocumentContent::default(),
            DocumentContent::Packed(_) => {
                heap::apart(|| *self = DocumentContent::Open(Box::new(open)));
            }
            DocumentContent::Open(place) => **place = open,
        }
    }

    fn pack(&mut self) {
        if let DocumentContent::Open(open) = self
            && open.is_small()
            && let Ok(text) = serde_json::to_vec(&open.fields)
        {
            *self = DocumentContent::Packed(heap::lasting(|| text.as_slice().into()));
        }
    }
}

impl Default for DocumentContent {
    fn default() -> Self {
        DocumentContent::Packed(Box::default())
    }
}

impl OpenDocument {
    /// Swaps the shared values into the fields, or back.
    fn exchange(&mut self) {
        for (key, slot) in &self.shared {
            if let Some(value) = self.fields.get_mut(key) {
                mem::swap(value, &mut *taken(slot));
            }
        }
    }

    /// Returns whether the JSON text is quick to write and to read again.
    fn is_small(&self) -> bool {
        let is_small = |value: &Value| match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.len() <= SMALL_TEXT,
            Value::Array(_) | Value::Object(_) => false,
        };
        self.fields.len() <= SMALL_FIELDS
            && self.shared.is_empty()
            && self.fields.iter().all(|(key, it)| key.len() <= SMALL_TEXT && is_small(it))
    }
}

impl Deref for LockedFields<'_> {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.open.fields
    }
}

impl DerefMut for LockedFields<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.open.fields
    }
}

impl Drop for LockedFields<'_> {
    fn drop(&mut self) {
        self.open.exchange();
        self.content.close(mem::take(&mut self.open));
    }
}

/// Locks the content, without poisoning: a panic while a lock is held cannot leave JSON half-written.
fn taken<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock()
}

impl WeakDocument {
    /// Returns whether the document still has an owner.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(content: &Value) -> SharedDocument {
        SharedDocument::new(content.as_object().cloned().unwrap())
    }

    fn content(document: &SharedDocument) -> Value {
        Value::Object(document.lock().clone())
    }

    #[test]
    fn maps_are_shared_with_copies_and_other_values_are_not() {
        let original = document(&json!({ "count": 0, "list": [], "map": { "a": 1, "list": [] } }));
        let (one, two) = (original.detached(), original.detached());
        one.lock()["count"] = json!(1);
        one.lock()["map"]["list"] = json!(["x"]);
        two.lock()["list"] = json!(["own"]);
        two.lock()["map"]["b"] = json!(2);
        let map = json!({ "a": 1, "list": ["x"], "b": 2 });
        assert_eq!(content(&original), json!({ "count": 0, "list": [], "map": map }));
        assert_eq!(content(&one), json!({ "count": 1, "list": [], "map": map }));
        assert_eq!(content(&two.detached()), json!({ "count": 0, "list": ["own"], "map": map }));
    }

    #[test]
    fn a_replaced_field_is_no_longer_shared() {
        let original = document(&json!({ "map": { "a": 1 } }));
        let (one, two) = (original.detached(), original.detached());
        one.lock_for(&["map".into()]).insert("map".into(), json!({ "a": 2 }));
        drop(two.lock_for(&["map".into()]).remove("map"));
        assert_eq!(content(&original), json!({ "map": { "a": 1 } }));
        assert_eq!(content(&one), json!({ "map": { "a": 2 } }));
        assert_eq!(content(&two), json!({}));
        assert_eq!(content(&one.detached()), json!({ "map": { "a": 2 } }));
    }

    #[test]
    fn a_small_document_is_kept_as_text_while_unused() {
        let value =
            json!({ "n": 1, "x": 0.1, "big": u64::MAX, "text": "x", "none": null, "yes": true });
        let small = document(&value);
        small.rest();
        assert!(matches!(&*taken(&small.0.content), DocumentContent::Packed(_)));
        assert_eq!(content(&small.detached()), value);
        small.lock_for(&["n".into()]).insert("n".into(), json!(2));
        small.rest();
        assert_eq!(small.lock()["n"], 2);
        small.rest();
        drop(small.lock().remove("n"));
        assert_eq!(small.lock().len(), 5);
        small.lock().clear();
        assert!(small.is_spare());
    }

    #[test]
    fn other_documents_are_not_packed() {
        let deep = document(&json!({ "map": { "a": 1 } }));
        let shared = deep.detached();
        for other in [&deep, &shared, &document(&json!({ "text": "x".repeat(1000) }))] {
            other.rest();
            assert!(matches!(&*taken(&other.0.content), DocumentContent::Open(_)));
        }
    }
}
