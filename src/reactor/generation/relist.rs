//! One more list of the objects of a stream, because new handlers are to see them.
//!
//! The watch continues meanwhile, so that no event is missed. The list may show an object as older than the watch has shown it:
//! so only those objects are taken from it that are known, and that were not shown to the new handlers otherwise. A list that the
//! stream itself begins later does as well.
//!
//! If the next version takes over before the list is complete, it begins again for both: objects that the first one has seen come
//! to the second one only.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};

use crate::features::indexes::Hold;
use crate::logic::generation::{NewHandlers, Version};
use crate::ports::{ApiError, StreamEvent};

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// A list that is not complete.
pub(in crate::reactor) struct Relist {
    /// `None` if the next list of the stream itself does as well.
    list: Option<Events>,
    handlers: PendingHandlers,
    /// Waits for the list.
    pub(super) hold: Arc<Hold>,
    /// The stream has begun a list of its own since then.
    is_overtaken: bool,
    /// The failure that was logged last.
    logged: String,
}

/// The new handlers that a relist is for.
pub(super) struct PendingHandlers {
    /// By the version with which they came, in this order; never empty.
    versions: Vec<(Version, NewHandlers)>,
    /// All of them.
    all: Arc<NewHandlers>,
    latest: Version,
}

impl PendingHandlers {
    /// Those that came with this version.
    pub(super) fn new(version: Version, handlers: NewHandlers) -> Self {
        let all = Arc::new(handlers.clone());
        PendingHandlers { all, versions: vec![(version, handlers)], latest: version }
    }

    /// Returns these and those of an earlier relist that was not completed.
    #[must_use]
    pub(super) fn after(self, earlier: PendingHandlers) -> Self {
        let mut all = NewHandlers::clone(&earlier.all);
        all.add(NewHandlers::clone(&self.all));
        let versions = earlier.versions.into_iter().chain(self.versions).collect();
        PendingHandlers { versions, all: Arc::new(all), latest: self.latest }
    }

    /// Returns those that an object has not been shown to, which was shown to this version.
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
    /// Begins with this list, or with the next one of the stream itself.
    pub(super) fn new(list: Option<Events>, handlers: PendingHandlers, hold: Arc<Hold>) -> Self {
        Relist { list, handlers, hold, is_overtaken: false, logged: String::new() }
    }

    /// Returns the latest version that it is for.
    pub(super) fn version(&self) -> Version {
        self.handlers.latest
    }

    /// Returns all handlers that it is for.
    pub(in crate::reactor) fn handlers(&self) -> &Arc<NewHandlers> {
        &self.handlers.all
    }

    /// Returns the handlers that it is for, of an object that was shown to this version.
    pub(super) fn handlers_since(&self, shown: Version) -> Arc<NewHandlers> {
        self.handlers.since(shown)
    }

    /// Ends it before it is complete. Returns the handlers that another relist must be for.
    pub(super) fn into_handlers(self) -> PendingHandlers {
        self.handlers
    }

    /// Returns the next item of the list.
    pub(in crate::reactor) async fn next(&mut self) -> Option<Result<StreamEvent, ApiError>> {
        match &mut self.list {
            Some(list) => list.next().await,
            None => std::future::pending().await,
        }
    }

    /// Leaves the list to the stream, which is not watching and begins with one.
    pub(in crate::reactor) fn leave_to_stream(&mut self) {
        self.list = None;
    }

    /// Logs a failure, once while it stays the same; the list is tried again by itself.
    pub(super) fn log(&mut self, name: &str, error: &ApiError) {
        if self.logged != error.message {
            tracing::warn!(
                target: "kopf.watching",
                "Listing the objects of {name} for handlers that have changed failed, retrying: {error}."
            );
            self.logged.clone_from(&error.message);
        }
    }

    /// Notes that the stream begins a list of its own.
    pub(in crate::reactor) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    /// Returns whether the list of the stream that is complete now shows everything that this one would.
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
