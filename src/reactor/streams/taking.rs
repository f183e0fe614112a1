//! Processes the events of a stream: which objects exist, which are gone.
//!
//! An object that is missing from a complete list was deleted, and gets the event that the watch has missed.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Listing, PACED_MAX, Stream};
use crate::logic::object::reason::EventType;
use crate::ports::{ApiError, StreamEvent};
use crate::reactor::{
    object::{memory::Key, queue::Event},
    streams::{relist::Relist, stream_log::StreamLog},
};
use crate::telemetry::Metrics;

impl Stream {
    /// Processes an item of the stream.
    pub(super) fn take(&mut self, item: Result<StreamEvent, ApiError>, log: &mut StreamLog) {
        match item {
            Ok(StreamEvent::Object(event_type, object)) => {
                self.context.hold.seen(object.header());
                let key = Key::of(object.header());
                if event_type == Some(EventType::Deleted) {
                    self.known.forget(&key);
                } else {
                    self.known.note(&key, object.header(), self.context.version);
                }
                let new_handlers = self.relist.as_ref().map(|it| Arc::clone(it.handlers()));
                self.bring(&key, Event { new_handlers, ..Event::new(event_type, object) });
            }
            Ok(StreamEvent::Listing) => {
                self.known.begin_list();
                let hold = Arc::clone(&self.context.hold);
                self.listing = Some(Listing { hold, paced_until: Instant::now() + PACED_MAX });
                self.relist.iter_mut().for_each(Relist::overtake);
            }
            Ok(StreamEvent::Listed) => {
                self.count(Metrics::listed);
                let missed = self.known.end_list();
                if !missed.is_empty() {
                    tracing::info!(
                        target: "kopf.watch",
                        "{} objects of {} were deleted while they were not watched.",
                        missed.len(),
                        self.name()
                    );
                }
                for (key, object) in missed {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                if let Some(listing) = self.listing.take() {
                    listing.hold.listed();
                }
                self.relist.take_if(|it| it.is_overtaken());
            }
            Ok(StreamEvent::Alive) => log.alive(),
            Err(error) => {
                self.count(Metrics::stream_failed);
                log.failed(&error);
            }
        }
    }

    /// Puts an event into its queue. A standby only updates its indexes: the list at its takeover shows all objects again.
    pub(super) fn bring(&mut self, key: &Key, event: Event) {
        if !self.is_standby {
            return self.workers.dispatch(key, event);
        }
        if !self.context.handlers.indexing.is_empty() {
            self.workers.dispatch(key, Event { for_indexes: true, ..event });
        }
    }
}
