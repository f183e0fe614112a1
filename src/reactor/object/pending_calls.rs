//! Tracks which handlers of raw events and of indexes must still be called for an event.
//!
//! Each handler is called once per event: a repeated cycle calls only those that another version has added in between. An object
//! for which nothing happens is shown to new handlers once, either by its worker or by the relist of its stream. So both store the
//! version to which the object was shown.

use std::{collections::BTreeSet, sync::Arc};

use crate::logic::generation::{NewHandlers, Version};
use crate::reactor::object::{context::StreamContext, queue::Event};

/// Handlers of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum HandlerSet {
    /// All handlers of the kind.
    All,
    /// The handlers with these ids.
    Only(BTreeSet<Arc<str>>),
}

/// The handlers that must still be called for one event, besides change handlers, daemons and timers.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct PendingCalls {
    /// Index handlers, which run before all others.
    pub(in crate::reactor) indexing: HandlerSet,
    /// Handlers of raw events.
    pub(in crate::reactor) watching: HandlerSet,
    /// The version to which the object is shown after these calls.
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
            // Meanwhile, while the event was in the queue, the object was shown to them in another way.
            Some(_) if shown >= version => calls.version = shown,
            Some(handlers) => calls.add(NewHandlers::clone(handlers)),
            None => {}
        }
        calls
    }

    /// Adds the new handlers if another version has taken over since the last cycle.
    pub(in crate::reactor) fn renew(&mut self, before: &StreamContext, now: &StreamContext) {
        // Handlers of earlier versions that the object was not shown to are left to the relist of the stream.
        if now.version == before.version || self.version != before.version {
            return;
        }
        self.add(now.new_since(before));
        self.version = now.version;
    }

    /// Marks all handlers as called.
    pub(in crate::reactor) fn end(&mut self) {
        self.indexed();
        self.watching = HandlerSet::none();
    }

    /// Marks the index handlers as called.
    pub(in crate::reactor) fn indexed(&mut self) {
        self.indexing = HandlerSet::none();
    }

    /// Takes the handlers of raw events, which are called now.
    pub(in crate::reactor) fn take_watching(&mut self) -> HandlerSet {
        std::mem::replace(&mut self.watching, HandlerSet::none())
    }

    fn add(&mut self, handlers: NewHandlers) {
        self.indexing.add(handlers.indexes);
        self.watching.add(handlers.watching);
    }
}
