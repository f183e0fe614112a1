//! A queue that serves scripts in turn: one that wakes thousands of timers at once does not delay those of others.

use std::collections::{BTreeMap, VecDeque};

use crate::logic::handlers::function::ScriptId;

/// The items of each script, first in, first out.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// None of them is empty.
    by_script: BTreeMap<ScriptId, VecDeque<T>>,
    /// The scripts of these, in the order of their turns.
    scripts: VecDeque<ScriptId>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue { by_script: BTreeMap::new(), scripts: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Appends an item to those of its script.
    pub(super) fn push(&mut self, script: ScriptId, item: T) {
        let own = self.by_script.entry(script).or_insert_with(|| {
            self.scripts.push_back(script);
            VecDeque::new()
        });
        own.push_back(item);
    }

    /// Takes the first item of the script whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let script = self.scripts.pop_front()?;
        let own = self.by_script.get_mut(&script)?;
        let item = own.pop_front();
        if own.is_empty() {
            self.by_script.remove(&script);
        } else {
            self.scripts.push_back(script);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::{FairQueue, ScriptId};

    #[test]
    fn a_script_with_many_items_does_not_delay_another_one() {
        let mut queue = FairQueue::default();
        for number in 0..4 {
            queue.push(ScriptId(7), number);
        }
        queue.push(ScriptId(1), 10);
        queue.push(ScriptId(1), 11);
        let served: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(served, [0, 10, 1, 11, 2, 3]);
        queue.push(ScriptId(1), 12);
        assert_eq!((queue.pop(), queue.pop()), (Some(12), None));
    }
}
