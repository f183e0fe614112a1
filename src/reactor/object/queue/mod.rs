//! The waiting events of one object, in order.

use std::{collections::VecDeque, num::NonZeroU64, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::logic::{
    change::order,
    generation::{NewHandlers, Version},
    object::{Object, reason::EventType},
};
use crate::ports::{BoxFuture, NewerEvents};
use crate::telemetry::{QueueSeries, QueuedObject};

/// Maximum number of waiting events of one object with handlers of raw events.
///
/// A slow handler must never slow down a watch, so at the limit the newest event replaces the previous one: change handlers lose nothing,
/// because they compare states; `on_event` handlers miss an intermediate step. The limit is reached only if an object changes this often
/// during one handler call.
const STEPS_MAX: usize = 1024;

/// Maximum number of waiting changes of one object without handlers of raw events. Handlers see up to this number of steps; beyond it, a
/// change replaces the previous one.
const CHANGES_MAX: usize = 16;

/// Maximum number of waiting bytes of one object. Beyond it, large objects replace each other before the other limits.
const BYTES_MAX: usize = 16 << 20;

/// Maximum number of replaced versions that an event stores: the operator's own patch is among the latest.
const REPLACED_MAX: usize = 64;

/// An event for a worker.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "`type` is reserved, and `kind` is another thing")]
pub(in crate::reactor) struct Event {
    /// `None` for objects of a listing.
    pub(in crate::reactor) event_type: Option<EventType>,
    /// The object as shown by this event.
    pub(in crate::reactor) object: Arc<Object>,
    /// The event is for the indexes alone: this replica is a standby, and lists the object again when it leads.
    pub(in crate::reactor) for_indexes: bool,
    /// The object is handled again because its handlers have changed, up to this version; nothing has happened to it.
    pub(in crate::reactor) recheck: Option<Version>,
    /// New handlers that may not have seen the object yet.
    pub(in crate::reactor) new_handlers: Option<Arc<NewHandlers>>,
    /// The versions of the events that this one replaced in the queue, at most [`REPLACED_MAX`] of them.
    pub(in crate::reactor) replaced: VecDeque<String>,
}

/// The queue of one object. Its stream fills it, its worker empties it.
#[derive(Debug)]
pub(in crate::reactor) struct ObjectQueue {
    content: Mutex<QueueContent>,
    changed: Notify,
    numbers: Arc<QueueSeries>,
}

#[derive(Debug, Default)]
struct QueueContent {
    events: VecDeque<Event>,
    /// Bytes of all events.
    bytes: usize,
    /// Whether handlers must see each event.
    keeps_steps: bool,
    /// The version to which the object was shown.
    shown: Version,
    /// No more events will arrive: the stream ends.
    ended: bool,
    /// The worker has ended: the next event needs a new queue.
    closed: bool,
    /// Counts the object while events are waiting.
    waiting: Option<QueuedObject>,
}

impl Event {
    /// Creates an event as received.
    pub(in crate::reactor) fn new(event_type: Option<EventType>, object: Arc<Object>) -> Self {
        Event {
            event_type,
            object,
            for_indexes: false,
            recheck: None,
            new_handlers: None,
            replaced: VecDeque::new(),
        }
    }

    /// Creates an event that shows an object to new handlers although nothing has happened to it.
    pub(in crate::reactor) fn recheck(
        object: Arc<Object>,
        version: Version,
        new_handlers: Arc<NewHandlers>,
    ) -> Self {
        let event = Event::new(None, object);
        Event { recheck: Some(version), new_handlers: Some(new_handlers), ..event }
    }

    /// Returns whether this event can replace `other`, the previous one, so that only an intermediate step is lost.
    fn can_replace(&self, other: &Event) -> bool {
        let kinds = (other.event_type, self.event_type);
        let is_change = kinds == (Some(EventType::Modified), Some(EventType::Modified));
        // A repeated object calls fewer handlers than a listed one.
        let is_listed_again = kinds == (None, None) && self.recheck.is_none();
        let (old, new) = (other.object.header(), self.object.header());
        (is_change || is_listed_again)
            && old.deletion_timestamp.is_some() == new.deletion_timestamp.is_some()
    }

    /// Replaces an earlier event.
    fn replace(&mut self, other: Event) {
        self.new_handlers = self.new_handlers.take().or(other.new_handlers);
        self.replaced = other.replaced;
        self.replaced.extend(other.object.header().resource_version.clone());
        if self.replaced.len() > REPLACED_MAX {
            self.replaced.pop_front();
        }
    }
}

impl ObjectQueue {
    /// Creates an empty queue; `keeps_steps` if handlers must see each event.
    pub(in crate::reactor) fn new(keeps_steps: bool, numbers: Arc<QueueSeries>) -> Self {
        let content = QueueContent { keeps_steps, ..QueueContent::default() };
        ObjectQueue { content: Mutex::new(content), changed: Notify::new(), numbers }
    }

    /// Sets whether handlers must see each event from now on.
    pub(in crate::reactor) fn keep_steps(&self, keeps_steps: bool) {
        self.lock().keeps_steps = keeps_steps;
    }

    /// Notes that the object was shown to the index and event handlers of this version.
    pub(in crate::reactor) fn show(&self, version: Version) {
        let mut content = self.lock();
        content.shown = content.shown.max(version);
    }

    /// Returns the version to which the object was shown.
    pub(in crate::reactor) fn shown(&self) -> Version {
        self.lock().shown
    }

    /// Adds an event if none is waiting and the worker still runs; returns whether it was added.
    pub(in crate::reactor) fn push_if_idle(&self, event: Event) -> bool {
        let mut content = self.lock();
        if content.closed || !content.events.is_empty() {
            return false;
        }
        content.bytes = event.object.size();
        content.events.push_back(event);
        content.count(&self.numbers);
        drop(content);
        self.changed.notify_one();
        true
    }

    /// Adds an event; returns it if the worker has ended.
    pub(in crate::reactor) fn push(&self, mut event: Event) -> Result<(), Event> {
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
        content.count(&self.numbers);
        drop(content);
        self.changed.notify_one();
        Ok(())
    }

    /// Ends the queue: no more events will arrive. Waiting events are still handled, without pauses.
    pub(in crate::reactor) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// Waits for the next event; returns `None` when the queue has ended.
    pub(in crate::reactor) async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut content = self.lock();
                match content.events.pop_front() {
                    Some(event) => {
                        content.bytes = content.bytes.saturating_sub(event.object.size());
                        if let Some(waiting) = content.waiting.take() {
                            waiting.end();
                        }
                        content.count(&self.numbers);
                        return Some(event);
                    }
                    None if content.ended => return None,
                    None => {}
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until newer events are there, or the queue ends. Workers interrupt their pauses for it.
    pub(in crate::reactor) async fn pressure(&self) {
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
    pub(in crate::reactor) async fn ended(&self) {
        while !self.lock().ended {
            self.changed.notified().await;
        }
    }

    /// Returns whether no event is waiting.
    pub(in crate::reactor) fn is_empty(&self) -> bool {
        self.lock().events.is_empty()
    }

    /// Returns whether the deletion of the object is waiting.
    pub(in crate::reactor) fn has_deletion(&self) -> bool {
        self.lock().events.iter().any(|it| it.event_type == Some(EventType::Deleted))
    }

    /// Returns the version of the latest waiting event, if it is a number.
    pub(in crate::reactor) fn latest_version(&self) -> Option<NonZeroU64> {
        self.lock().events.back().and_then(|it| order::number(&it.object))
    }

    /// Returns whether no more events will arrive.
    pub(in crate::reactor) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Closes the queue if no event is waiting; afterwards `push` fails. Returns whether the queue is closed.
    pub(in crate::reactor) fn close_if_empty(&self) -> bool {
        let mut content = self.lock();
        content.closed |= content.events.is_empty();
        content.closed
    }

    /// Returns whether the worker has ended.
    pub(in crate::reactor) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits for an event with a later version than this one, or for the deletion of the object.
    async fn later_than(&self, version: Option<NonZeroU64>) {
        let is_later = |it: &Event| {
            it.event_type == Some(EventType::Deleted)
                || order::number(&it.object).zip(version).is_none_or(|(it, own)| it > own)
        };
        while !self.lock().events.iter().any(is_later) {
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueContent> {
        // Each change under this lock is one assignment; a panic cannot leave it incomplete.
        self.content.lock()
    }
}

impl QueueContent {
    /// Counts the object as waiting, if it is and does not count yet.
    fn count(&mut self, numbers: &Arc<QueueSeries>) {
        if self.waiting.is_none() && !self.events.is_empty() {
            self.waiting = Some(numbers.add());
        }
    }
}

impl NewerEvents for ObjectQueue {
    fn wait(&self, after: Option<NonZeroU64>) -> BoxFuture<'_, ()> {
        Box::pin(self.later_than(after))
    }
}

#[cfg(test)]
mod tests;
