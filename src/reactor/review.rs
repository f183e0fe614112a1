//! A look at all objects of a stream beside its watch, because other handlers want to see them.
//!
//! One list is asked for while the watch goes on, so that no event is missed. What the list shows of an object may be older than
//! what the watch has brought in the meantime, and is not needed then: only those objects are taken from it that are known, and
//! for which nothing has happened since. A list that the stream itself begins later does as well.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};

use super::memory::Key;
use crate::features::indexes::Hold;
use crate::logic::review::News;
use crate::ports::{ApiError, StreamEvent};

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// A look that is not complete.
pub(super) struct Review {
    /// The list; `None` if that of the stream itself will do, which is to come.
    list: Option<Events>,
    /// Objects that the watch has brought since it began.
    touched: BTreeSet<Key>,
    /// For whom it is.
    pub(super) news: Arc<News>,
    /// Waits for it.
    pub(super) hold: Arc<Hold>,
    /// The stream has begun a list of its own since then.
    is_overtaken: bool,
    /// The failure that was told last.
    told: String,
}

impl Review {
    /// One that begins with this list, or with the next of the stream itself.
    pub(super) fn new(list: Option<Events>, news: Arc<News>, hold: Arc<Hold>) -> Self {
        Review {
            list,
            touched: BTreeSet::new(),
            news,
            hold,
            is_overtaken: false,
            told: String::new(),
        }
    }

    /// The next item of its list.
    pub(super) async fn next(&mut self) -> Option<Result<StreamEvent, ApiError>> {
        match &mut self.list {
            Some(list) => list.next().await,
            None => std::future::pending().await,
        }
    }

    /// The watch is not read any more: the list with which it begins again will do.
    pub(super) fn leave_to_stream(&mut self) {
        self.list = None;
    }

    /// The stream brings an object by itself.
    pub(super) fn touch(&mut self, key: &Key) {
        if !self.touched.contains(key) {
            self.touched.insert(key.clone());
        }
    }

    /// Whether the stream has brought the object by itself.
    pub(super) fn is_touched(&self, key: &Key) -> bool {
        self.touched.contains(key)
    }

    /// Tells that it has failed; the list is tried again by itself.
    pub(super) fn tell(&mut self, name: &str, error: &ApiError) {
        if self.told != error.message {
            tracing::warn!(
                target: "kopf.watching",
                "The objects of {name} cannot be listed for the handlers that have changed, which will be tried again: {error}."
            );
            self.told.clone_from(&error.message);
        }
    }

    /// The stream begins a list of its own.
    pub(super) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    /// Whether the list of the stream that is complete now shows everything that this one would.
    pub(super) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }
}
