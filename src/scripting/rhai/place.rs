//! A place in a shared tree: a pointer next to the root that keeps it alive, so that a step down allocates nothing.
#![expect(unsafe_code, reason = "a reference into an `Arc` next to that `Arc` has no lifetime")]

use std::{ptr::NonNull, sync::Arc};

use serde_json::Value;

/// A value somewhere in a tree. Clones are the same place.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: Arc<Value>,
    /// Points into `root`.
    value: NonNull<Value>,
}

// SAFETY: a place is an `Arc<Value>` and a shared reference into it, and both can be sent and shared.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// Returns the root of a tree.
    pub(super) fn root(root: Arc<Value>) -> Self {
        let value = NonNull::from(&*root);
        Place { root, value }
    }

    /// Returns what is there.
    pub(super) fn value(&self) -> &Value {
        // SAFETY: the pointer was made of a reference into `root`, either in `root` or in `step`. The tree lives as long as `root`,
        // which is private and never replaced. As long as that exists, nobody has a mutable reference to the tree: `Arc` gives one
        // only to its single owner, and a `Value` has no interior mutability. So the value neither moves nor changes.
        unsafe { self.value.as_ref() }
    }

    /// Returns the place of a value that is part of this one; `None` if there is none.
    pub(super) fn step(&self, find: impl FnOnce(&Value) -> Option<&Value>) -> Option<Self> {
        let value = find(self.value())?.into();
        Some(Place { root: Arc::clone(&self.root), value })
    }
}
