//! Data that scripts share and change in place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Map, Value};

/// A JSON object behind a lock: views in scripts read and write it by path. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Document(Arc<Mutex<Map<String, Value>>>);

/// A note of a [`Document`] that does not keep it. While the note exists, no other document gets its address.
#[derive(Clone, Debug)]
pub struct WeakDocument(Weak<Mutex<Map<String, Value>>>);

/// What the process remembers about an object for its scripts; also the operator's own.
pub type Memo = Document;

impl Document {
    /// A document with this content.
    pub fn new(content: Map<String, Value>) -> Self {
        Document(Arc::new(Mutex::new(content)))
    }

    /// The content. Hold the guard for a few lines only, never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Map<String, Value>> {
        // A panic while the lock was held cannot leave JSON half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A document of its own with the same content.
    #[must_use]
    pub fn detached(&self) -> Self {
        Document::new(self.lock().clone())
    }

    /// Whether both are the same document.
    pub fn is(&self, other: &Document) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether nothing is in it and nobody else has it: it can be made anew when it is needed.
    pub fn is_spare(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0 && self.lock().is_empty()
    }

    /// Identifies the document while it lives, for engines that keep more than data beside it.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// A note of this document.
    pub fn downgrade(&self) -> WeakDocument {
        WeakDocument(Arc::downgrade(&self.0))
    }
}

impl WeakDocument {
    /// Whether somebody still has the document.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}
