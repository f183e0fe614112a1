//! What a standby would work on if it led: the newest state of each object of one stream.
//!
//! Filled while another replica leads, worked on at once at the takeover. For handlers a takeover is a start: every object
//! comes as from a listing, so those that resume do, and what the former leader has finished is not done again.

use std::collections::BTreeMap;

use super::{memory::Key, queue::Event};
use crate::logic::reason::EventType;

/// The objects of one stream, while this replica does not lead; `None` when it does.
#[derive(Debug)]
pub(super) struct Standby(Option<BTreeMap<Key, Event>>);

impl Standby {
    /// Empty, and not even needed by a leader.
    pub(super) fn new(is_leading: bool) -> Self {
        Standby((!is_leading).then(BTreeMap::new))
    }

    /// Whether events are noted rather than worked on.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes an event; it replaces the one before of the same object. The bound is what the cluster has.
    pub(super) fn note(&mut self, key: &Key, event: &Event) {
        let Some(newest) = &mut self.0 else { return };
        if event.event_type == Some(EventType::Deleted) {
            newest.remove(key);
        } else {
            newest.insert(key.clone(), Event { event_type: None, ..event.clone() });
        }
    }

    /// From now on nothing is noted any more; gives what was.
    pub(super) fn take_over(&mut self) -> BTreeMap<Key, Event> {
        self.0.take().unwrap_or_default()
    }
}
