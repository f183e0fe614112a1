//! What the events of a stream mean: who came, who is gone, who is to be told.
//!
//! What the events do not tell it finds out itself: an object that a complete listing lacks is gone, and gets the event that it
//! missed.

use std::sync::Arc;

use super::Streaming;
use crate::logic::reason::EventType;
use crate::ports::{ApiError, StreamEvent};
use crate::reactor::{memory::Key, queue::Event, review::Review, stream_log::StreamLog};

impl Streaming {
    /// Takes what the stream brings.
    pub(super) fn take(&mut self, item: Result<StreamEvent, ApiError>, log: &mut StreamLog) {
        match item {
            Ok(StreamEvent::Object(event_type, object)) => {
                self.serving.hold.seen(object.header());
                let key = Key::of(object.header());
                if event_type == Some(EventType::Deleted) {
                    self.seen.forget(&key);
                } else {
                    self.seen.note(&key, object.header(), self.serving.turn);
                }
                let news = self.review.as_ref().map(|it| Arc::clone(it.audience().all()));
                self.bring(&key, Event { news, ..Event::new(event_type, object) });
            }
            Ok(StreamEvent::Listing) => {
                self.seen.begin();
                self.listing = Some(Arc::clone(&self.serving.hold));
                self.review.iter_mut().for_each(Review::overtake);
            }
            Ok(StreamEvent::Listed) => {
                self.count(|it| &it.listings);
                let missed = self.seen.complete();
                if !missed.is_empty() {
                    tracing::info!(
                        target: "kopf.watching",
                        "{} objects of {} were deleted while they were not watched.",
                        missed.len(),
                        self.name()
                    );
                }
                for (key, object) in missed {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                if let Some(hold) = self.listing.take() {
                    hold.listed();
                }
                self.review.take_if(|it| it.is_overtaken());
            }
            Ok(StreamEvent::Alive) => log.alive(),
            Err(error) => {
                self.count(|it| &it.stream_failures);
                log.failed(&error);
            }
        }
    }

    /// Brings an event to its queue. A standby only keeps its indexes: the list at the takeover brings all objects again.
    pub(super) fn bring(&mut self, key: &Key, event: Event) {
        if !self.is_standby {
            return self.crew.dispatch(key, event);
        }
        if !self.serving.handlers.indexing.is_empty() {
            self.crew.dispatch(key, Event { for_indexes: true, ..event });
        }
    }
}
