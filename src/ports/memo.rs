//! Data that scripts share and change in place.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde_json::{Map, Value};

/// A JSON object behind a lock: views in scripts read and write it by path. Clones are the same document.
///
/// A document that was made from another one shares the maps in it, until one of them gets another value there. Lists are
/// copied: Rhai changes them by writing them anew, which cannot be told from another value.
#[derive(Clone, Debug, Default)]
pub struct Document {
    content: Arc<Mutex<Content>>,
    /// Held while one of several documents looks at what they share.
    turn: Arc<Mutex<()>>,
}

/// A note of a [`Document`] that does not keep it. While the note exists, no other document gets its address.
#[derive(Clone, Debug)]
pub struct WeakDocument(Weak<Mutex<Content>>);

/// What the process remembers about an object for its scripts; also the operator's own.
pub type Memo = Document;

#[derive(Debug, Default)]
struct Content {
    /// Null where the value is shared, except while the document is locked.
    fields: Map<String, Value>,
    shared: BTreeMap<String, Arc<Mutex<Value>>>,
}

/// The fields of a locked document.
pub struct Fields<'a> {
    content: MutexGuard<'a, Content>,
    /// Dropped after the values were given back.
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Document {
    /// A document with this content.
    pub fn new(content: Map<String, Value>) -> Self {
        let content = Content { fields: content, shared: BTreeMap::new() };
        Document { content: Arc::new(Mutex::new(content)), turn: Arc::default() }
    }

    /// The content. Hold the guard for a few lines only, never across an await, and never that of another document with it.
    pub fn lock(&self) -> Fields<'_> {
        let mut content = taken(&self.content);
        let turn = (!content.shared.is_empty()).then(|| taken(&self.turn));
        content.exchange();
        Fields { content, _turn: turn }
    }

    /// The same for a change of the field at this path. If that is one of the document itself, it is shared no more.
    pub fn lock_for(&self, path: &[String]) -> Fields<'_> {
        let mut fields = self.lock();
        if fields.is_empty() {
            // Most memos get one field or a few, and the usual growth makes room for more at once.
            *fields = Map::with_capacity(1);
        }
        if let [key] = path
            && let Some(slot) = fields.content.shared.remove(key)
        {
            let value = fields.get(key).cloned().unwrap_or_default();
            *taken(&slot) = value;
        }
        fields
    }

    /// A document of its own with the same content: a shallow copy, as of Kopf's memos.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut content = taken(&self.content);
        let _turn = taken(&self.turn);
        let Content { fields, shared } = &mut *content;
        for (key, value) in fields.iter_mut().filter(|(_, it)| it.is_object()) {
            shared.insert(key.clone(), Arc::new(Mutex::new(value.take())));
        }
        let copy = Content { fields: fields.clone(), shared: shared.clone() };
        Document { content: Arc::new(Mutex::new(copy)), turn: Arc::clone(&self.turn) }
    }

    /// Whether both are the same document.
    pub fn is(&self, other: &Document) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }

    /// Whether nothing is in it and nobody else has it: it can be made anew when it is needed.
    pub fn is_spare(&self) -> bool {
        let nobody_has_it =
            Arc::strong_count(&self.content) == 1 && Arc::weak_count(&self.content) == 0;
        nobody_has_it && self.lock().is_empty()
    }

    /// Identifies the document while it lives, for engines that keep more than data beside it.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.content).addr()
    }

    /// A note of this document.
    pub fn downgrade(&self) -> WeakDocument {
        WeakDocument(Arc::downgrade(&self.content))
    }
}

impl Content {
    /// Takes what is shared into the fields, or gives it back.
    fn exchange(&mut self) {
        for (key, slot) in &self.shared {
            if let Some(value) = self.fields.get_mut(key) {
                std::mem::swap(value, &mut *taken(slot));
            }
        }
    }
}

impl Deref for Fields<'_> {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.content.fields
    }
}

impl DerefMut for Fields<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.content.fields
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        self.content.exchange();
    }
}

/// A panic while a lock was held cannot leave JSON half-written.
fn taken<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WeakDocument {
    /// Whether somebody still has the document.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(content: &Value) -> Document {
        Document::new(content.as_object().cloned().unwrap())
    }

    fn content(document: &Document) -> Value {
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
    fn a_field_that_gets_another_value_is_shared_no_more() {
        let original = document(&json!({ "map": { "a": 1 } }));
        let (one, two) = (original.detached(), original.detached());
        one.lock_for(&["map".into()]).insert("map".into(), json!({ "a": 2 }));
        drop(two.lock_for(&["map".into()]).remove("map"));
        assert_eq!(content(&original), json!({ "map": { "a": 1 } }));
        assert_eq!(content(&one), json!({ "map": { "a": 2 } }));
        assert_eq!(content(&two), json!({}));
        assert_eq!(content(&one.detached()), json!({ "map": { "a": 2 } }));
    }
}
