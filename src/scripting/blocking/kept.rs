//! Host data that a script retains: bodies of objects to which its views refer.
//!
//! A view copies nothing, so the allocator does not count the tree that it keeps alive. If a tree is still viewed at the end of a turn, its
//! size is estimated then, once, and counts until its last view is dropped. Most calls retain no views and cost nothing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicIsize, Ordering},
    },
};

use kopf_json::shared::SharedJson;
use parking_lot::{Mutex, MutexGuard};

use super::{common::Common, ledger::Ledger};

/// The trees that one script has views of.
#[derive(Debug, Default)]
pub(super) struct KeptTrees(Mutex<Holds>);

#[derive(Debug, Default)]
struct Holds {
    /// By the address of the tree, so that a tree counts once.
    by_address: BTreeMap<usize, Weak<KeptTree>>,
    fresh: Vec<Weak<KeptTree>>,
}

/// A viewed tree; all views of it share this.
#[derive(Debug)]
pub(in crate::scripting) struct KeptTree {
    json: SharedJson,
    /// The bytes that it counts now.
    bytes: AtomicIsize,
    common: Arc<Common>,
}

impl KeptTrees {
    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.0.lock()
    }

    /// Counts the trees that were first viewed in this turn and are still viewed.
    pub(super) fn weigh(&self, ledger: &Ledger) {
        let fresh = std::mem::take(&mut self.holds().fresh);
        // Without the lock, which the drop of a last reference takes.
        for hold in fresh.iter().filter_map(Weak::upgrade) {
            let bytes = isize::try_from(hold.json.bytes()).unwrap_or(isize::MAX);
            hold.bytes.store(bytes, Ordering::Relaxed);
            ledger.add(bytes);
        }
    }
}

impl KeptTree {
    /// Returns the hold of a tree, for a view that a call of this script creates.
    pub(super) fn of(common: &Arc<Common>, json: &SharedJson) -> Arc<Self> {
        let address = json.address();
        let mut holds = common.kept.holds();
        if let Some(hold) = holds.by_address.get(&address).and_then(Weak::upgrade) {
            return hold;
        }
        let bytes = AtomicIsize::new(0);
        let hold = Arc::new(KeptTree { json: json.clone(), bytes, common: Arc::clone(common) });
        holds.by_address.insert(address, Arc::downgrade(&hold));
        holds.fresh.push(Arc::downgrade(&hold));
        hold
    }
}

impl Drop for KeptTree {
    fn drop(&mut self) {
        self.common.ledger.add(-self.bytes.load(Ordering::Relaxed));
        let address = self.json.address();
        let mut holds = self.common.kept.holds();
        // Another view of the same tree may have been created meanwhile.
        if holds.by_address.get(&address).is_some_and(|it| it.strong_count() == 0) {
            holds.by_address.remove(&address);
        }
    }
}
