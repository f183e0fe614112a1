//! A part of shared JSON: a pointer or a position, next to the whole that it keeps alive, so that descending allocates nothing.
#![expect(unsafe_code, reason = "a reference into an `Arc` next to that `Arc` has no lifetime")]

use std::{ptr::NonNull, sync::Arc};

use serde_json::Value;

use super::{
    shared::{Part, SharedJson},
    tape::Tape,
};

/// A value in shared JSON, which it keeps alive. Clones refer to the same value.
#[derive(Clone, Debug)]
pub enum SharedPart {
    /// In a tree.
    Tree(TreePart),
    /// On a tape.
    Tape(Arc<Tape>, u32),
}

/// A value in a tree.
#[derive(Clone, Debug)]
pub struct TreePart {
    root: Arc<Value>,
    /// Points to `root` itself or to a part of it.
    value: NonNull<Value>,
}

// SAFETY: a part is an `Arc<Value>` and a shared reference into it, and both can be sent and shared.
unsafe impl Send for TreePart {}
// SAFETY: as above.
unsafe impl Sync for TreePart {}

impl TreePart {
    fn value(&self) -> &Value {
        // SAFETY: the pointer was created from a reference into `root`, either in `root` or in `step`. The tree lives as long as the field
        // `root`, which is private and never replaced. While it exists, there is no mutable reference to the tree: `Arc` provides one only
        // to its single owner, and a `Value` has no interior mutability. So the value neither moves nor changes.
        unsafe { self.value.as_ref() }
    }
}

impl SharedPart {
    /// Returns the whole value.
    pub fn root(json: SharedJson) -> Self {
        match json {
            SharedJson::Tree(root) => {
                let value = NonNull::from(&*root);
                SharedPart::Tree(TreePart { root, value })
            }
            SharedJson::Tape(tape) => {
                let at = tape.root().at();
                SharedPart::Tape(tape, at)
            }
        }
    }

    /// Returns the value.
    pub fn value(&self) -> Part<'_> {
        match self {
            SharedPart::Tree(it) => Part::Tree(it.value()),
            SharedPart::Tape(tape, at) => Part::Tape(tape.part(*at)),
        }
    }

    /// Returns whether both are the same value of the same JSON.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (SharedPart::Tree(a), SharedPart::Tree(b)) => a.value == b.value,
            (SharedPart::Tape(a, at), SharedPart::Tape(b, to)) => Arc::ptr_eq(a, b) && at == to,
            (SharedPart::Tree(_) | SharedPart::Tape(..), _) => false,
        }
    }

    /// Returns a value inside of this one; `None` if `find` finds none.
    pub fn step(&self, find: impl for<'a> FnOnce(Part<'a>) -> Option<Part<'a>>) -> Option<Self> {
        match (self, find(self.value())?) {
            (SharedPart::Tree(it), Part::Tree(value)) => {
                let (root, value) = (Arc::clone(&it.root), value.into());
                Some(SharedPart::Tree(TreePart { root, value }))
            }
            (SharedPart::Tape(tape, _), Part::Tape(part)) => {
                Some(SharedPart::Tape(Arc::clone(tape), part.at()))
            }
            // No part has another form than the whole.
            (SharedPart::Tree(_), Part::Tape(_)) | (SharedPart::Tape(..), Part::Tree(_)) => None,
        }
    }
}
