//! The events of one object that wait for its worker, in order.

use std::{collections::VecDeque, num::NonZeroU64, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::logic::{
    generation::{NewHandlers, Version},
    object::Object,
    order,
    reason::EventType,
};
use crate::ports::{BoxFuture, NewerEvents};

/// The most events that wait for one object with handlers of raw events.
///
/// A watch is never slowed down by a slow handler, so at the bound the newest event replaces the one before it: handlers
/// of changes lose nothing, for they compare states; `on_event` handlers miss a step in between. An object must change this
/// often during one handler call to get there.
const STEPS_MAX: usize = 1024;

/// The most changes that wait for one object where nobody needs to see each of them. A few, so that handlers see the usual
/// steps; beyond that a change replaces the one before it.
const CHANGES_MAX: usize = 16;

/// The most bytes that wait for one object; only then do big objects replace each other earlier.
const BYTES_MAX: usize = 16 << 20;

/// How many versions an event remembers of those that it replaced: our own patch is among the latest.
const REPLACED_MAX: usize = 64;

/// An event on its way to a worker.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "`type` is reserved, and `kind` is another thing")]
pub(super) struct Event {
    /// No type for objects of a listing.
    pub(super) event_type: Option<EventType>,
    /// The object as of this event.
    pub(super) object: Arc<Object>,
    /// It is for the indexes alone: this replica stands by, and the event comes again when it leads.
    pub(super) for_indexes: bool,
    /// Nothing has happened: the object comes because its handlers have changed, up to this version.
    pub(super) recheck: Option<Version>,
    /// The handlers that may not have seen the object yet, as they are new.
    pub(super) new_handlers: Option<Arc<NewHandlers>>,
    /// The versions of earlier events that it replaced in the queue, at most [`REPLACED_MAX`] of them.
    pub(super) replaced: VecDeque<String>,
}

/// The queue of one object. Filled by its stream, emptied by its worker.
#[derive(Debug, Default)]
pub(super) struct Queue {
    content: Mutex<Content>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Content {
    events: VecDeque<Event>,
    /// Of all events.
    bytes: usize,
    /// Somebody must see each event.
    keeps_steps: bool,
    /// The version to which the object was shown.
    shown: Version,
    /// Nothing more will come: the stream ends.
    ended: bool,
    /// The worker has gone: the next event needs another queue.
    closed: bool,
}

impl Event {
    /// As it came.
    pub(super) fn new(event_type: Option<EventType>, object: Arc<Object>) -> Self {
        Event {
            event_type,
            object,
            for_indexes: false,
            recheck: None,
            new_handlers: None,
            replaced: VecDeque::new(),
        }
    }

    /// An object that comes to these new handlers though nothing has happened to it.
    pub(super) fn recheck(
        object: Arc<Object>,
        version: Version,
        new_handlers: Arc<NewHandlers>,
    ) -> Self {
        let event = Event::new(None, object);
        Event { recheck: Some(version), new_handlers: Some(new_handlers), ..event }
    }

    /// Whether nothing but a step in between is lost when this stands for `other`, which came before it.
    fn can_replace(&self, other: &Event) -> bool {
        let kinds = (other.event_type, self.event_type);
        let is_change = kinds == (Some(EventType::Modified), Some(EventType::Modified));
        // One that comes again calls fewer handlers than a listed one.
        let is_listed_again = kinds == (None, None) && self.recheck.is_none();
        let (old, new) = (other.object.header(), self.object.header());
        (is_change || is_listed_again)
            && old.deletion_timestamp.is_some() == new.deletion_timestamp.is_some()
    }

    /// Takes the place of an event that came before it.
    fn replace(&mut self, other: Event) {
        self.new_handlers = self.new_handlers.take().or(other.new_handlers);
        self.replaced = other.replaced;
        self.replaced.extend(other.object.header().resource_version.clone());
        if self.replaced.len() > REPLACED_MAX {
            self.replaced.pop_front();
        }
    }
}

impl Queue {
    /// An empty queue; `keeps_steps` if each event must be seen.
    pub(super) fn new(keeps_steps: bool) -> Self {
        let content = Content { keeps_steps, ..Content::default() };
        Queue { content: Mutex::new(content), changed: Notify::new() }
    }

    /// From now on each event must be seen, or need not be.
    pub(super) fn keep_steps(&self, keeps_steps: bool) {
        self.lock().keeps_steps = keeps_steps;
    }

    /// Notes that the object was shown to the handlers of this version that are called for whatever happens.
    pub(super) fn show(&self, version: Version) {
        let mut content = self.lock();
        content.shown = content.shown.max(version);
    }

    /// Returns the version to which the object was shown.
    pub(super) fn shown(&self) -> Version {
        self.lock().shown
    }

    /// Adds an event if none waits and the worker is still there; tells whether it did.
    pub(super) fn push_if_idle(&self, event: Event) -> bool {
        let mut content = self.lock();
        if content.closed || !content.events.is_empty() {
            return false;
        }
        content.bytes = event.object.size();
        content.events.push_back(event);
        drop(content);
        self.changed.notify_one();
        true
    }

    /// Adds an event; gives it back if the worker has gone.
    pub(super) fn push(&self, mut event: Event) -> Result<(), Event> {
        let mut content = self.lock();
        if content.closed {
            return Err(event);
        }
        let max = if content.keeps_steps { STEPS_MAX } else { CHANGES_MAX };
        let is_full = content.events.len() >= max || content.bytes >= BYTES_MAX;
        if is_full && let Some(last) = content.events.pop_back_if(|last| event.can_replace(last)) {
            content.bytes = content.bytes.saturating_sub(last.object.size());
            event.replace(last);
        }
        content.bytes = content.bytes.saturating_add(event.object.size());
        content.events.push_back(event);
        drop(content);
        self.changed.notify_one();
        Ok(())
    }

    /// Says that nothing more will come. What waits is still handled, without pauses.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// The next event; `None` when the queue has ended.
    pub(super) async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut content = self.lock();
                match content.events.pop_front() {
                    Some(event) => {
                        content.bytes = content.bytes.saturating_sub(event.object.size());
                        return Some(event);
                    }
                    None if content.ended => return None,
                    None => {}
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits for pressure: newer events are there, or the end is near. Pauses of a worker are cut short by it.
    pub(super) async fn pressure(&self) {
        loop {
            {
                let content = self.lock();
                if content.ended || !content.events.is_empty() {
                    return;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits for the end of the queue, whatever comes before it.
    pub(super) async fn ended(&self) {
        while !self.lock().ended {
            self.changed.notified().await;
        }
    }

    /// Whether nothing waits in it.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().events.is_empty()
    }

    /// Whether the end of the object waits in it.
    pub(super) fn has_deletion(&self) -> bool {
        self.lock().events.iter().any(|it| it.event_type == Some(EventType::Deleted))
    }

    /// The latest version of the object that waits in it, if it is a number.
    pub(super) fn latest_version(&self) -> Option<NonZeroU64> {
        self.lock().events.back().and_then(|it| order::number(&it.object))
    }

    /// Whether nothing more will come.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Closes the queue if nothing waits in it; afterwards `push` refuses. Tells whether it closed.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut content = self.lock();
        content.closed |= content.events.is_empty();
        content.closed
    }

    /// Whether its worker has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits for an event that shows a later version than this one, or the end of the object.
    async fn later_than(&self, version: Option<NonZeroU64>) {
        let is_later = |it: &Event| {
            it.event_type == Some(EventType::Deleted)
                || order::number(&it.object).zip(version).is_none_or(|(it, own)| it > own)
        };
        while !self.lock().events.iter().any(is_later) {
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Every change under this lock is one assignment; a panic cannot leave it half-done.
        self.content.lock()
    }
}

impl NewerEvents for Queue {
    fn wait(&self, after: Option<NonZeroU64>) -> BoxFuture<'_, ()> {
        Box::pin(self.later_than(after))
    }
}

#[cfg(test)]
mod tests;
