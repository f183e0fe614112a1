//! The events of one object that wait for its worker, in order.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::logic::{object::Object, reason::EventType};

/// The most events that wait for one object.
///
/// A watch is never slowed down by a slow handler, so at the bound the newest event replaces the one before it: handlers
/// of changes lose nothing, for they compare states; `on_event` handlers miss a step in between. An object must change this
/// often during one handler call to get there.
const EVENTS_MAX: usize = 1024;

/// An event on its way to a worker.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// No type for objects of a listing.
    pub(super) event_type: Option<EventType>,
    /// The object as of this event.
    pub(super) object: Arc<Object>,
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
    /// Nothing more will come: the stream ends.
    ended: bool,
    /// The worker has gone: the next event needs another queue.
    closed: bool,
}

impl Queue {
    /// Adds an event; gives it back if the worker has gone.
    pub(super) fn push(&self, event: Event) -> Result<(), Event> {
        let mut content = self.lock();
        if content.closed {
            return Err(event);
        }
        if content.events.len() >= EVENTS_MAX {
            content.events.pop_back();
        }
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
                    Some(event) => return Some(event),
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

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Every change under this lock is one assignment; a panic cannot leave it half-done.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
