//! What a standby would work on if it led: the newest state of each object of one stream.
//!
//! Filled while another replica leads, worked on at once at the takeover. For handlers a takeover is a start: every object
//! comes as from a listing, so those that resume do, and what the former leader has finished is not done again.

use std::collections::{BTreeMap, BTreeSet};

use super::{memory::Key, queue::Event};
use crate::logic::reason::EventType;

/// The objects of one stream, while this replica does not lead.
#[derive(Debug)]
pub(super) enum Backlog {
    /// Somebody else leads, or nobody yet.
    Standby {
        /// One event for each object: the bound is what the cluster has.
        newest: BTreeMap<Key, Event>,
        /// The objects of the listing that comes in.
        listed: BTreeSet<Key>,
    },
    /// There is nothing to wait for.
    Leading,
}

impl Backlog {
    /// Empty, and not even needed by a leader.
    pub(super) fn new(is_leading: bool) -> Self {
        if is_leading {
            Backlog::Leading
        } else {
            Backlog::Standby { newest: BTreeMap::new(), listed: BTreeSet::new() }
        }
    }

    /// Whether events are noted rather than worked on.
    pub(super) fn is_standby(&self) -> bool {
        matches!(self, Backlog::Standby { .. })
    }

    /// Notes an event; it replaces the one before of the same object.
    pub(super) fn note(&mut self, event: &Event) {
        let Backlog::Standby { newest, listed } = self else { return };
        let key = Key::of(event.object.header());
        if event.event_type.is_none() {
            listed.insert(key.clone());
        }
        if event.event_type == Some(EventType::Deleted) {
            newest.remove(&key);
        } else {
            newest.insert(key, Event { event_type: None, ..event.clone() });
        }
    }

    /// A listing is complete: what is not in it is gone.
    pub(super) fn settle(&mut self) {
        let Backlog::Standby { newest, listed } = self else { return };
        newest.retain(|key, _| listed.contains(key));
        listed.clear();
    }

    /// Forgets what was noted; another listing will tell.
    pub(super) fn clear(&mut self) {
        *self = Backlog::new(!self.is_standby());
    }

    /// From now on nothing is noted any more; gives what was.
    pub(super) fn take_over(&mut self) -> impl Iterator<Item = Event> + use<> {
        let newest = match std::mem::replace(self, Backlog::Leading) {
            Backlog::Standby { newest, .. } => newest,
            Backlog::Leading => BTreeMap::new(),
        };
        newest.into_values()
    }
}
