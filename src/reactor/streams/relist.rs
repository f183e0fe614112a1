//! Lists the objects of a stream once more, because new handlers must see them.
//!
//! The watch continues meanwhile, so that no event is missed. The list may return older states than the watch has delivered, so it is only
//! used for known objects that were not shown to the new handlers in another way. A list that the stream itself starts later serves the
//! same purpose.
//!
//! If the next version takes over before the list is complete, the list starts over for both: objects that the first version has
//! seen are shown to the second one only.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};

use crate::features::indexes::ReadinessHold;
use crate::logic::generation::{NewHandlers, Version};
use crate::ports::{ApiError, StreamEvent};

type RelistEvents = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// A relist that is not complete yet.
pub(in crate::reactor) struct Relist {
    /// `None` if the next list of the stream itself serves the purpose.
    list: Option<RelistEvents>,
    handlers: PendingHandlers,
    /// The hold that waits for the list.
    pub(in crate::reactor) hold: Arc<ReadinessHold>,
    /// Whether the stream has started its own list since then.
    is_overtaken: bool,
    /// The failure that was logged last.
    logged: String,
}

/// The new handlers that a relist is for.
pub(in crate::reactor) struct PendingHandlers {
    /// The handlers by the version that added them, in ascending order; never empty.
    versions: Vec<(Version, NewHandlers)>,
    /// All of these handlers.
    all: Arc<NewHandlers>,
    latest: Version,
}

impl PendingHandlers {
    /// Creates the set of handlers that this version has added.
    pub(in crate::reactor) fn new(version: Version, handlers: NewHandlers) -> Self {
        let all = Arc::new(handlers.clone());
        PendingHandlers { all, versions: vec![(version, handlers)], latest: version }
    }

    /// Returns these handlers and those of an earlier relist that was not completed.
    #[must_use]
    pub(in crate::reactor) fn after(self, earlier: PendingHandlers) -> Self {
        let mut all = NewHandlers::clone(&earlier.all);
        all.add(NewHandlers::clone(&self.all));
        let versions = earlier.versions.into_iter().chain(self.versions).collect();
        PendingHandlers { versions, all: Arc::new(all), latest: self.latest }
    }

    /// Returns the handlers that an object was not shown to, given the version to which it was shown.
    fn since(&self, shown: Version) -> Arc<NewHandlers> {
        if self.versions.iter().all(|(version, _)| *version > shown) {
            return Arc::clone(&self.all);
        }
        let mut since = NewHandlers::default();
        for (_, handlers) in self.versions.iter().filter(|(version, _)| *version > shown) {
            since.add(handlers.clone());
        }
        Arc::new(since)
    }
}

impl Relist {
    /// Starts with this list, or with the next list of the stream itself.
    pub(in crate::reactor) fn new(
        list: Option<RelistEvents>,
        handlers: PendingHandlers,
        hold: Arc<ReadinessHold>,
    ) -> Self {
        Relist { list, handlers, hold, is_overtaken: false, logged: String::new() }
    }

    /// Returns the latest version that the relist is for.
    pub(in crate::reactor) fn version(&self) -> Version {
        self.handlers.latest
    }

    /// Returns all handlers that the relist is for.
    pub(in crate::reactor) fn handlers(&self) -> &Arc<NewHandlers> {
        &self.handlers.all
    }

    /// Returns the handlers that the relist is for, for an object that was shown to this version.
    pub(in crate::reactor) fn handlers_since(&self, shown: Version) -> Arc<NewHandlers> {
        self.handlers.since(shown)
    }

    /// Ends the relist early. Returns the handlers that another relist must be for.
    pub(in crate::reactor) fn into_handlers(self) -> PendingHandlers {
        self.handlers
    }

    /// Returns the next item of the list.
    pub(in crate::reactor) async fn next(&mut self) -> Option<Result<StreamEvent, ApiError>> {
        match &mut self.list {
            Some(list) => list.next().await,
            None => std::future::pending().await,
        }
    }

    /// Drops the list, because the stream is not watching and starts with a list.
    pub(in crate::reactor) fn leave_to_stream(&mut self) {
        self.list = None;
    }

    /// Logs a failure, but only once while it stays the same; the list is retried automatically.
    pub(in crate::reactor) fn log(&mut self, name: &str, error: &ApiError) {
        if self.logged != error.message {
            tracing::warn!(
                target: "kopf.watch",
                "Listing the objects of {name} for handlers that have changed failed, retrying: {error}."
            );
            self.logged.clone_from(&error.message);
        }
    }

    /// Notes that the stream has started its own list.
    pub(in crate::reactor) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    /// Returns whether the stream's own list, which is complete now, has shown everything that this one would.
    pub(in crate::reactor) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::{NewHandlers, PendingHandlers, Version};

    fn handlers(id: &str) -> NewHandlers {
        NewHandlers { watching: [id.into()].into(), ..NewHandlers::default() }
    }

    #[test]
    fn an_object_is_shown_only_to_handlers_that_have_not_seen_it() {
        let before = Version::FIRST;
        let (first, second) = (before.next_generation(), before.next_generation().next_pass());
        let pending = PendingHandlers::new(second, handlers("b"))
            .after(PendingHandlers::new(first, handlers("a")));
        let ids = |shown| pending.since(shown).watching.iter().cloned().collect::<Vec<_>>();
        assert_eq!(ids(before), ["a".into(), "b".into()]);
        assert_eq!(ids(first), ["b".into()]);
        assert!(ids(second).is_empty());
        assert_eq!((pending.latest, pending.all.watching.len()), (second, 2));
    }
}
