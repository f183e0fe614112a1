//! Another generation of handlers takes over in place: connection, queues and what is known of the objects stay.
//!
//! Which of the objects are looked at again is decided in `logic/review`. Each comes to new handlers once: see `calls.rs`.

use std::{collections::BTreeSet, sync::Arc};

use super::Streaming;
use crate::features::daemons::Sight;
use crate::logic::{object::Object, registry::ResourceHandlers, review};
use crate::ports::{ApiError, StreamEvent};
use crate::reactor::{
    memory::Key,
    queue::Event,
    review::{Audience, Review},
    serving::Serving,
};
use crate::settings::RetryFailed;

impl Streaming {
    /// Other handlers serve from now on. Whatever is under way goes on, and of the objects only those are looked at again that
    /// must be: by what is known of them, or by another list.
    pub(super) fn adopt(&mut self, is_listening: bool) {
        let now = self.post.get();
        let before = std::mem::replace(&mut self.serving, now);
        let (old, new) = (&before.handlers, Arc::clone(&self.serving.handlers));
        self.crew.keep_steps(!new.watching.is_empty());
        self.seen.look_for(&new.watching);
        let news = self.serving.news_since(&before);
        match review::review(old, &new, &news) {
            _ if self.must_retry(old) => {}
            review::Review::Nobody => return,
            review::Review::Attended(ids) => {
                if let Some(objects) = self.attended(&ids) {
                    for (key, object) in objects {
                        self.look_at(&key, object);
                    }
                    return;
                }
            }
            review::Review::Everybody => {}
        }
        let mut audience = Audience::new(self.serving.turn, news);
        if let Some(unfinished) = self.review.take() {
            audience = audience.after(unfinished.give_up());
        }
        let list = is_listening.then(|| self.serving.cluster.stream(self.target()));
        self.review = Some(Review::new(list, audience, Arc::clone(&self.serving.hold)));
    }

    /// Whether handlers that were edited may have failed for good on some of the objects.
    fn must_retry(&self, old: &ResourceHandlers) -> bool {
        let Serving { settings, handlers, memories, .. } = &*self.serving;
        settings.reload.retry_failed != RetryFailed::Never
            && review::has_edited(old, handlers)
            && self.seen.keys().any(|it| memories.has_failed(it))
    }

    /// The objects in whose background any of these daemons and timers runs. Nothing if one has ended for some object, of which
    /// nothing more is known then.
    fn attended(&self, ids: &BTreeSet<Arc<str>>) -> Option<Vec<(Key, Arc<Object>)>> {
        let mut objects = Vec::new();
        for key in self.seen.keys() {
            match self.serving.memories.sight(key, ids) {
                Sight::None => {}
                Sight::Object(object) => objects.push((key.clone(), object)),
                Sight::Lost => return None,
            }
        }
        Some(objects)
    }

    /// Takes an item of the list of a look.
    pub(super) fn look(&mut self, item: Option<Result<StreamEvent, ApiError>>) {
        let Some(review) = &self.review else { return };
        match item {
            Some(Ok(StreamEvent::Object(_, object))) => {
                let key = Key::of(object.header());
                // Those that are not known yet will come by the watch.
                let Some(shown) = self.seen.shown(&key) else { return };
                let is_seen = shown.max(self.crew.shown(&key)) >= review.audience().turn();
                if is_seen || !self.seen.retouch(&key, object.header()) {
                    return;
                }
                review.hold.seen(object.header());
                self.look_at(&key, object);
            }
            Some(Ok(StreamEvent::Listed)) | None => {
                review.hold.listed();
                self.review = None;
            }
            Some(Ok(StreamEvent::Listing | StreamEvent::Alive)) => {}
            Some(Err(error)) => {
                let name = self.name();
                self.review.iter_mut().for_each(|it| it.tell(&name, &error));
            }
        }
    }

    /// Has another look at an object that nothing else brings to the handlers.
    fn look_at(&mut self, key: &Key, object: Arc<Object>) {
        let shown = self.seen.shown(key).unwrap_or_default().max(self.crew.shown(key));
        let audience = self.review.as_ref().map(Review::audience);
        let news = audience.map(|it| it.since(shown)).unwrap_or_default();
        let is_standby = self.is_standby;
        if !is_standby || !news.indexes.is_empty() {
            let event = Event::review(object, self.serving.turn, &news);
            self.seen.show(key, self.serving.turn);
            self.crew.look_at(key, Event { for_indexes: is_standby, ..event });
        }
    }
}
