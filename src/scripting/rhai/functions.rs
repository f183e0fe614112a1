//! The functions of a script that the operator refers to: declared handlers, filters, transformations.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use rhai::FnPtr;

use super::errors::is_anonymous;
use crate::logic::handlers::function::{Function, ScriptId};
use crate::scripting::blocking::control::given;

/// The table of referenced functions of one script.
pub(super) struct Functions {
    script: ScriptId,
    next: AtomicU32,
    slots: Arc<FunctionSlots>,
}

/// Shared with the references, which free their slots.
#[derive(Default)]
struct FunctionSlots {
    by_slot: Mutex<BTreeMap<u32, FunctionSlot>>,
    /// Functions with captured values whose slots were freed. They are dropped on a thread of the script: the values may be nested deep,
    /// and count as the script's memory.
    freed: Mutex<Vec<FnPtr>>,
}

struct FunctionSlot {
    pointer: FnPtr,
    /// The existing reference, so that one function has one `Function`.
    reference: Weak<Guard>,
}

/// Frees a slot when the last reference to it is dropped.
struct Guard {
    slot: u32,
    slots: Arc<FunctionSlots>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Captured values may refer to other slots, so they are dropped after the lock is released.
        let freed = self.slots.lock().remove(&self.slot);
        if let Some(FunctionSlot { pointer, .. }) = freed
            && !pointer.curry().is_empty()
        {
            self.slots.freed().push(pointer);
        }
    }
}

impl FunctionSlots {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, FunctionSlot>> {
        self.by_slot.lock()
    }

    fn freed(&self) -> MutexGuard<'_, Vec<FnPtr>> {
        self.freed.lock()
    }
}

impl Functions {
    pub(super) fn new(script: ScriptId) -> Self {
        Functions { script, next: AtomicU32::new(0), slots: Arc::default() }
    }

    /// Returns a reference to a function. A function without captured values has one slot, however often it is referenced.
    pub(super) fn refer(&self, pointer: &FnPtr) -> Function {
        let known = if pointer.curry().is_empty() { self.known(pointer.fn_name()) } else { None };
        let (slot, guard) = known.unwrap_or_else(|| self.insert(pointer));
        let name = if is_anonymous(pointer.fn_name()) { "" } else { pointer.fn_name() };
        given(|| Function::new(self.script, slot, name).keeping(guard))
    }

    /// Returns the slot of a function without captured values, if it has one.
    fn known(&self, name: &str) -> Option<(u32, Arc<Guard>)> {
        self.slots.lock().iter().find_map(|(slot, known)| {
            let same = known.pointer.curry().is_empty() && known.pointer.fn_name() == name;
            let guard = if same { known.reference.upgrade() } else { None };
            guard.map(|guard| (*slot, guard))
        })
    }

    fn insert(&self, pointer: &FnPtr) -> (u32, Arc<Guard>) {
        let slot = self.next.fetch_add(1, Ordering::Relaxed);
        let pointer = pointer.clone();
        // The host frees the slot and its guard.
        given(|| {
            let guard = Arc::new(Guard { slot, slots: Arc::clone(&self.slots) });
            let entry = FunctionSlot { pointer, reference: Arc::downgrade(&guard) };
            self.slots.lock().insert(slot, entry);
            (slot, guard)
        })
    }

    /// Returns the next slot; all assigned slots are below it.
    pub(super) fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Prevents slots below this one from being assigned.
    pub(super) fn skip_to(&self, slot: u32) {
        self.next.fetch_max(slot, Ordering::Relaxed);
    }

    /// Drops unreferenced functions. Must be called on a thread of the script.
    pub(super) fn sweep(&self) {
        // One by one and without the lock: captured values may refer to other functions.
        while let Some(pointer) = { self.slots.freed().pop() } {
            drop(pointer);
        }
    }

    /// Drops all functions: none of them will be called any more.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.slots.lock());
        drop(all);
        self.sweep();
    }

    /// Returns the names of all functions without captured values.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let by_slot = self.slots.lock();
        let plain = by_slot.values().filter(|it| it.pointer.curry().is_empty());
        plain.map(|it| it.pointer.fn_name().to_owned()).collect()
    }

    /// Returns whether a reference is to a function with one of these names and without captured values.
    pub(super) fn is_one_of(&self, names: &BTreeSet<String>, function: &Function) -> bool {
        self.slots
            .lock()
            .get(&function.slot)
            .is_some_and(|it| it.pointer.curry().is_empty() && names.contains(it.pointer.fn_name()))
    }

    /// Returns the function of a reference; `None` if it is no longer loaded.
    pub(super) fn find(&self, function: &Function) -> Option<FnPtr> {
        self.slots.lock().get(&function.slot).map(|it| it.pointer.clone())
    }
}
