//! The functions of a script that somebody refers to: declared handlers, filters, transformations.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use rhai::FnPtr;

use super::errors::is_anonymous;
use crate::logic::function::{Function, ScriptId};

/// The table of functions of one script.
pub(super) struct Functions {
    script: ScriptId,
    next: AtomicU32,
    slots: Arc<Slots>,
}

/// Shared with the references, which free their slots.
#[derive(Default)]
struct Slots {
    by_slot: Mutex<BTreeMap<u32, Slot>>,
}

struct Slot {
    pointer: FnPtr,
    /// Finds the reference again, so that one function is one `Function`.
    reference: Weak<Guard>,
}

/// Frees a slot when the last reference to it goes.
struct Guard {
    slot: u32,
    slots: Arc<Slots>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // What the function has captured may refer to other slots, so it goes when the lock is open again.
        let freed = self.slots.lock().remove(&self.slot);
        drop(freed);
    }
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Slot>> {
        self.by_slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Functions {
    pub(super) fn new(script: ScriptId) -> Self {
        Functions { script, next: AtomicU32::new(0), slots: Arc::default() }
    }

    /// A reference to a function. A named one has one slot, however often it is referred to.
    pub(super) fn refer(&self, pointer: &FnPtr) -> Function {
        let plain = pointer.curry().is_empty();
        let known = self.slots.lock().iter().find_map(|(slot, known)| {
            let same = plain
                && known.pointer.curry().is_empty()
                && known.pointer.fn_name() == pointer.fn_name();
            let guard = if same { known.reference.upgrade() } else { None };
            guard.map(|guard| (*slot, guard))
        });
        let (slot, guard) = known.unwrap_or_else(|| self.insert(pointer));
        let name = if is_anonymous(pointer.fn_name()) { "" } else { pointer.fn_name() };
        Function::new(self.script, slot, name).keeping(guard)
    }

    fn insert(&self, pointer: &FnPtr) -> (u32, Arc<Guard>) {
        let slot = self.next.fetch_add(1, Ordering::Relaxed);
        let guard = Arc::new(Guard { slot, slots: Arc::clone(&self.slots) });
        let entry = Slot { pointer: pointer.clone(), reference: Arc::downgrade(&guard) };
        self.slots.lock().insert(slot, entry);
        (slot, guard)
    }

    /// The function a reference means.
    pub(super) fn find(&self, function: &Function) -> Option<FnPtr> {
        self.slots.lock().get(&function.slot).map(|it| it.pointer.clone())
    }
}
