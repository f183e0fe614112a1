//! A reference to a value in a shared tree: a pointer, next to the root that keeps it alive, so that descending allocates nothing.
#![expect(unsafe_code, reason = "a reference into an `Arc` next to that `Arc` has no lifetime")]

use std::{ptr::NonNull, sync::Arc};

use serde_json::Value;

/// A value in a tree. Clones refer to the same value.
#[derive(Clone, Debug)]
pub(super) struct TreePosition {
    root: Arc<Value>,
    /// Points to `root` itself or to a part of it.
    value: NonNull<Value>,
}

// SAFETY: a place is an `Arc<Value>` and a shared reference into it, and both can be sent and shared.
unsafe impl Send for TreePosition {}
// SAFETY: as above.
unsafe impl Sync for TreePosition {}

impl TreePosition {
    /// Returns the place of the root of a tree.
    pub(super) fn root(root: Arc<Value>) -> Self {
        let value = NonNull::from(&*root);
        TreePosition { root, value }
    }

    /// Returns the value at this place.
    pub(super) fn value(&self) -> &Value {
        // SAFETY: the pointer was created from a reference into `root`, either in `root` or in `step`. The tree lives as long as the field
        // `root`, which is private and never replaced. While it exists, there is no mutable reference to the tree: `Arc` provides one only
        // to its single owner, and a `Value` has no interior mutability. So the value neither moves nor changes.
        unsafe { self.value.as_ref() }
    }

    /// Returns the place of a value inside of this one; `None` if `find` finds none.
    pub(super) fn step(&self, find: impl FnOnce(&Value) -> Option<&Value>) -> Option<Self> {
        let value = find(self.value())?.into();
        Some(TreePosition { root: Arc::clone(&self.root), value })
    }
}
