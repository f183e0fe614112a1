//! A queue that serves scripts in turn: one that wakes many timers at once does not delay those of others.

use std::collections::VecDeque;

use crate::logic::handlers::function::ScriptId;

/// The items of each script, first in, first out; the scripts are in the order of their turns. None is empty.
#[derive(Debug)]
pub(super) struct FairQueue<T>(VecDeque<(ScriptId, VecDeque<T>)>);

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue(VecDeque::new())
    }
}

impl<T> FairQueue<T> {
    /// Appends an item to those of its script.
    pub(super) fn push(&mut self, script: ScriptId, item: T) {
        match self.0.iter_mut().find(|(it, _)| *it == script) {
            Some((_, own)) => own.push_back(item),
            None => self.0.push_back((script, VecDeque::from([item]))),
        }
    }

    /// Takes the first item of the script whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (script, mut own) = self.0.pop_front()?;
        let item = own.pop_front();
        if !own.is_empty() {
            self.0.push_back((script, own));
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
