//! Objects whose events wait for a worker, in order of priority.
//!
//! After a restart, every object is listed, and many of them need work: later events must not wait behind these. So there are two queues,
//! and the one for listed objects comes second.

use std::collections::{BTreeMap, VecDeque};

use crate::reactor::object::memory::Key;

/// The objects that wait for a worker: those with live events, and those of a list.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Backlog {
    live: VecDeque<Key>,
    listed: VecDeque<Key>,
    /// The waiting objects; the value is true for those with a live event. An object that became live is in both queues.
    waiting: BTreeMap<Key, bool>,
}

impl Backlog {
    /// Adds an object, or notes that a waiting object now has a live event.
    pub(in crate::reactor) fn add(&mut self, key: &Key, is_live: bool) {
        match self.waiting.get_mut(key) {
            Some(was_live) if *was_live || !is_live => return,
            Some(was_live) => *was_live = true,
            None => drop(self.waiting.insert(key.clone(), is_live)),
        }
        let queue = if is_live { &mut self.live } else { &mut self.listed };
        queue.push_back(key.clone());
    }

    /// Returns the next object.
    pub(in crate::reactor) fn next(&mut self) -> Option<Key> {
        while let Some(key) = self.live.pop_front().or_else(|| self.listed.pop_front()) {
            // Objects that became live have already left through the live queue.
            if self.waiting.remove(&key).is_some() {
                return Some(key);
            }
        }
        None
    }

    /// Returns whether an object is waiting.
    pub(in crate::reactor) fn has(&self, key: &Key) -> bool {
        self.waiting.contains_key(key)
    }

    /// Returns the number of waiting objects.
    pub(in crate::reactor) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no object is waiting.
    pub(in crate::reactor) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Key};

    fn key(name: &str) -> Key {
        Key::Text(name.into())
    }

    fn drain(backlog: &mut Backlog) -> Vec<Key> {
        std::iter::from_fn(|| backlog.next()).collect()
    }

    #[test]
    fn live_events_come_before_listed_objects() {
        let mut backlog = Backlog::default();
        backlog.add(&key("a"), false);
        backlog.add(&key("b"), false);
        backlog.add(&key("c"), true);
        assert_eq!(drain(&mut backlog), ["c", "a", "b"].map(key));
    }

    #[test]
    fn an_object_with_a_live_event_moves_up_and_is_served_once() {
        let mut backlog = Backlog::default();
        for name in ["a", "b"] {
            backlog.add(&key(name), false);
        }
        backlog.add(&key("b"), true);
        backlog.add(&key("b"), false);
        assert!(backlog.has(&key("b")));
        assert_eq!(drain(&mut backlog), ["b", "a"].map(key));
        assert!(backlog.is_empty());
        backlog.add(&key("b"), false);
        assert_eq!(drain(&mut backlog), [key("b")], "an object may be added again");
    }
}
