//! Which handlers of raw events and of indexes are still to be called for an event.
//!
//! Each is called once for each event: a repetition of its cycle calls those that came with another version in between, and no
//! others. An object for which nothing happens comes to new handlers once, whoever brings it: its worker, or the relist of its
//! stream. So both note the version to which the object was shown.

use std::{collections::BTreeSet, sync::Arc};

use super::StreamContext;
use crate::logic::generation::{NewHandlers, Version};
use crate::reactor::queue::Event;

/// Handlers of one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum HandlerSet {
    /// All of them.
    All,
    /// Those of these ids.
    Only(BTreeSet<Arc<str>>),
}

/// The handlers that are still to be called for one event, besides those of changes, daemons and timers.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct PendingCalls {
    /// Handlers of indexes.
    pub(in crate::reactor) indexing: HandlerSet,
    /// Handlers of raw events.
    pub(in crate::reactor) watching: HandlerSet,
    /// The version to which the object is shown when these have been called.
    pub(in crate::reactor) version: Version,
}

impl HandlerSet {
    fn none() -> Self {
        HandlerSet::Only(BTreeSet::new())
    }

    /// Returns whether no handler is left.
    pub(in crate::reactor) fn is_empty(&self) -> bool {
        matches!(self, HandlerSet::Only(ids) if ids.is_empty())
    }

    fn add(&mut self, ids: BTreeSet<Arc<str>>) {
        match self {
            HandlerSet::All => {}
            HandlerSet::Only(known) => known.extend(ids),
        }
    }
}

impl PendingCalls {
    /// Returns the handlers to call in the first cycle of an event. `shown`: the version to which the object was shown already.
    pub(in crate::reactor) fn of(event: &Event, context: &StreamContext, shown: Version) -> Self {
        let Some(version) = event.recheck else {
            let (indexing, watching) = (HandlerSet::All, HandlerSet::All);
            return PendingCalls { indexing, watching, version: context.version };
        };
        let (indexing, watching) = (HandlerSet::none(), HandlerSet::none());
        let mut calls = PendingCalls { indexing, watching, version };
        match &event.new_handlers {
            // The object has come to them otherwise while the event was in the queue.
            Some(_) if shown >= version => calls.version = shown,
            Some(handlers) => calls.add(NewHandlers::clone(handlers)),
            None => {}
        }
        calls
    }

    /// Adds what is new if another version has taken over since the last cycle.
    pub(in crate::reactor) fn renew(&mut self, before: &StreamContext, now: &StreamContext) {
        // Earlier versions that the object was not shown to are up to the relist of the stream.
        if now.version == before.version || self.version != before.version {
            return;
        }
        self.add(now.new_since(before));
        self.version = now.version;
    }

    /// Notes that all have been called.
    pub(in crate::reactor) fn end(&mut self) {
        self.indexed();
        self.watching = HandlerSet::none();
    }

    /// Notes that those of indexes have been called.
    pub(in crate::reactor) fn indexed(&mut self) {
        self.indexing = HandlerSet::none();
    }

    /// Returns those of raw events, which are called now.
    pub(in crate::reactor) fn take_watching(&mut self) -> HandlerSet {
        std::mem::replace(&mut self.watching, HandlerSet::none())
    }

    fn add(&mut self, handlers: NewHandlers) {
        self.indexing.add(handlers.indexes);
        self.watching.add(handlers.watching);
    }
}
