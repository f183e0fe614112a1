//! Values of memos that are no data: functions, coroutines, objects of the host.
//!
//! They stay in the VM that stored them, beside the memo: no other script sees them, and they go with the VM.

use std::{cell::RefCell, collections::BTreeMap, ops::Bound};

use mlua::Value as LuaValue;

use crate::ports::{Document, WeakDocument};

/// The values of all memos, by memo and path.
#[derive(Default)]
pub(super) struct SideTable(RefCell<BTreeMap<usize, Beside>>);

struct Beside {
    /// Keeps the address from being used again.
    document: WeakDocument,
    values: BTreeMap<Vec<String>, LuaValue>,
}

impl SideTable {
    /// The value at this path.
    pub(super) fn get(&self, document: &Document, path: &[String]) -> Option<LuaValue> {
        self.0.borrow().get(&document.address())?.values.get(path).cloned()
    }

    /// The keys directly below this path.
    pub(super) fn keys(&self, document: &Document, path: &[String]) -> Vec<String> {
        let beside = self.0.borrow();
        let paths = beside.get(&document.address()).into_iter().flat_map(|it| it.values.keys());
        paths
            .filter_map(|it| it.strip_prefix(path))
            .filter_map(|it| if let [key] = it { Some(key.clone()) } else { None })
            .collect()
    }

    /// Stores a value; forgets those of documents that are gone.
    pub(super) fn set(&self, document: &Document, path: Vec<String>, value: LuaValue) {
        let mut all = self.0.borrow_mut();
        all.retain(|_, it| it.document.is_alive());
        let beside = all
            .entry(document.address())
            .or_insert_with(|| Beside { document: document.downgrade(), values: BTreeMap::new() });
        beside.values.insert(path, value);
    }

    /// Forgets the value at this path and everything below it.
    pub(super) fn remove(&self, document: &Document, path: &[String]) {
        if let Some(beside) = self.0.borrow_mut().get_mut(&document.address()) {
            // These stand together: looking at all of them would make many small memos slow.
            let from_path =
                beside.values.range::<[String], _>((Bound::Included(path), Bound::Unbounded));
            let below = from_path.map(|(it, _)| it).take_while(|it| it.starts_with(path));
            let below: Vec<_> = below.cloned().collect();
            for path in below {
                beside.values.remove(&path);
            }
        }
    }
}
