//! Hands a stream over to the next version of its handlers: the connection, the queues and the known objects stay.
//!
//! `logic/generation/recheck/mod.rs` decides which objects must be handled again. Each object is shown to new handlers once: see
//! `reactor/object/pending_calls.rs`.

use std::{collections::BTreeSet, sync::Arc};

use crate::features::daemons::LastSeen;
use crate::logic::{generation::Recheck, object::Object};
use crate::ports::{ApiError, StreamEvent};
use crate::reactor::{
    object::{memory::Key, queue::Event},
    streams::{
        Stream,
        relist::{PendingHandlers, Relist},
    },
};
use crate::settings::RetryFailed;

impl Stream {
    /// Continues with the latest version. Running cycles continue, and only the necessary objects are handled again: those with affected
    /// daemons, or all of them by a relist. `is_watching`: whether the stream is watching, so that no other list follows anyway.
    pub(in crate::reactor) fn take_over(&mut self, is_watching: bool) {
        let now = self.shared.get();
        let before = std::mem::replace(&mut self.context, now);
        let handlers = Arc::clone(&self.context.handlers);
        self.workers.keep_steps(!handlers.watching.is_empty());
        self.known.keep_tags(&handlers.watching);
        let unfilled = self.context.unfilled_since(&before);
        let recheck = Recheck::between(&before.handlers, &handlers, &unfilled);
        let is_all = recheck.all || (recheck.all_if_failed && self.has_failed());
        if !is_all && let Some(objects) = self.running(&recheck.daemons) {
            return objects.into_iter().for_each(|(key, object)| self.recheck(&key, object));
        }
        let mut pending =
            PendingHandlers::new(self.context.version, self.context.new_since(&before));
        if let Some(unfinished) = self.relist.take() {
            pending = pending.after(unfinished.into_handlers());
        }
        let list = is_watching.then(|| self.context.cluster.stream(self.target()));
        self.relist = Some(Relist::new(list, pending, Arc::clone(&self.context.hold)));
    }

    /// Returns whether handlers have failed permanently on any object and may be retried.
    fn has_failed(&self) -> bool {
        let memories = &self.context.memories;
        self.context.settings.reload.retry_failed != RetryFailed::Never
            && self.known.keys().any(|it| memories.has_failed(it))
    }

    /// Returns the objects for which any of these daemons and timers runs; `None` if one has ended by itself for some object, because that
    /// object was not kept.
    fn running(&self, ids: &BTreeSet<Arc<str>>) -> Option<Vec<(Key, Arc<Object>)>> {
        let mut objects = Vec::new();
        for key in self.known.keys().filter(|_| !ids.is_empty()) {
            match self.context.memories.last_seen(key, ids) {
                LastSeen::NotRunning => {}
                LastSeen::Object(object) => objects.push((key.clone(), object)),
                LastSeen::Ended => return None,
            }
        }
        Some(objects)
    }

    /// Processes an item of the relist.
    pub(in crate::reactor) fn take_relisted(
        &mut self,
        item: Option<Result<StreamEvent, ApiError>>,
    ) {
        let Some(relist) = &self.relist else { return };
        match item {
            Some(Ok(StreamEvent::Object(_, object))) => {
                let key = Key::of(object.header());
                // Unknown objects arrive by the watch.
                let Some(shown) = self.known.shown(&key) else { return };
                let is_shown = shown.max(self.workers.shown(&key)) >= relist.version();
                if is_shown || !self.known.refresh(&key, object.header()) {
                    return;
                }
                relist.hold.seen(object.header());
                self.recheck(&key, object);
            }
            Some(Ok(StreamEvent::Listed)) | None => {
                relist.hold.listed();
                self.relist = None;
            }
            Some(Ok(StreamEvent::Listing | StreamEvent::Alive)) => {}
            Some(Err(error)) => {
                let name = self.name();
                self.relist.iter_mut().for_each(|it| it.log(&name, &error));
            }
        }
    }

    /// Queues an object for its handlers although nothing has happened to it.
    fn recheck(&mut self, key: &Key, object: Arc<Object>) {
        let shown = self.known.shown(key).unwrap_or_default().max(self.workers.shown(key));
        let handlers = self.relist.as_ref().map(|it| it.handlers_since(shown)).unwrap_or_default();
        let for_indexes = self.is_standby;
        if !for_indexes || !handlers.indexes.is_empty() {
            let version = self.context.version;
            let event = Event::recheck(object, version, handlers);
            self.known.show(key, version);
            self.workers.recheck(key, Event { for_indexes, ..event });
        }
    }
}
