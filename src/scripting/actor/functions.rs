//! The functions of a VM that the operator refers to: declared handlers, filters, transformations.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

use crate::logic::handlers::function::{Function, ScriptId};

/// The first slot of functions that are lent: those of calls, which their VM forgets again.
pub(in crate::scripting) const LENT: u32 = 1 << 31;

/// The functions of a VM, by slot.
pub(in crate::scripting) struct Functions<F> {
    /// Functions of the top level. A VM that replaces another declares the same ones, in the same slots.
    kept: RefCell<Vec<F>>,
    /// Functions of calls. Their slots are never reused, not even by a VM that replaces this one.
    lent: RefCell<BTreeMap<u32, F>>,
    /// The next slot to lend, shared by all VMs of the script.
    next: Arc<AtomicU32>,
    /// Slots whose last reference was dropped, maybe on another thread.
    released: Arc<Mutex<Vec<u32>>>,
}

/// Returns its slot when it is dropped.
struct Lease {
    slot: u32,
    released: Arc<Mutex<Vec<u32>>>,
}

impl<F: Clone + PartialEq> Functions<F> {
    /// Creates an empty table; `next` counts the slots to lend, starting at [`LENT`].
    pub(in crate::scripting) fn new(next: Arc<AtomicU32>) -> Self {
        let (kept, lent, released) = (RefCell::default(), RefCell::default(), Arc::default());
        Functions { kept, lent, next, released }
    }

    /// Creates a reference that is valid as long as the VM exists; the same function gets the same slot.
    pub(in crate::scripting) fn keep(
        &self,
        script: ScriptId,
        function: &F,
        name: &str,
    ) -> Function {
        let mut kept = self.kept.borrow_mut();
        let slot = kept.iter().position(|it| it == function).unwrap_or_else(|| {
            kept.push(function.clone());
            kept.len() - 1
        });
        // Never exceeded: the memory limit of a VM allows far fewer functions.
        Function::new(script, u32::try_from(slot).unwrap_or(u32::MAX), name)
    }

    /// Creates a reference whose slot is freed when its last clone is dropped.
    pub(in crate::scripting) fn lend(
        &self,
        script: ScriptId,
        function: &F,
        name: &str,
    ) -> Function {
        let mut lent = self.lent.borrow_mut();
        let released = std::mem::take(&mut *self.released.lock());
        for slot in released {
            lent.remove(&slot);
        }
        let slot = self.next.fetch_add(1, Ordering::Relaxed) | LENT;
        lent.insert(slot, function.clone());
        let lease = Lease { slot, released: Arc::clone(&self.released) };
        Function::new(script, slot, name).keeping(Arc::new(lease))
    }

    /// Returns the function in this slot, unless it belonged to a VM that was replaced.
    pub(in crate::scripting) fn get(&self, slot: u32) -> Option<F> {
        if slot >= LENT {
            return self.lent.borrow().get(&slot).cloned();
        }
        self.kept.borrow().get(usize::try_from(slot).ok()?).cloned()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.released.lock().push(self.slot);
    }
}
