//! The end of a stream, and what becomes of its objects.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Streaming;
use crate::logic::{indexing::Owner, reason::EventType, stopping::StopReason};
use crate::reactor::{memory::Key, queue::Event, seen::Seen};

/// Why a stream ends before the operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum Farewell {
    /// Its resource or its namespace is not in the cluster any more, and neither are its objects.
    Gone,
    /// Nobody wants the resource any more; this is what its daemons and timers are told.
    Unserved(StopReason),
    /// Another stream takes over its objects.
    Replaced,
}

impl Streaming {
    /// Lets the workers finish. `None` for the end of the operator.
    pub(super) async fn part(
        mut self,
        farewell: Option<Farewell>,
        exit: &CancellationToken,
    ) -> Option<Seen> {
        // Nobody waits for it any more, whichever generation it was.
        self.review = None;
        self.serving.hold.end();
        self.post.get().hold.end();
        match farewell {
            Some(Farewell::Replaced) => {
                self.crew.settle(exit).await;
                Some(self.seen)
            }
            Some(Farewell::Gone) => {
                let known = self.seen.drain();
                let keys = known.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                for (key, object) in known {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                self.crew.settle(exit).await;
                self.let_go(&keys, StopReason::ResourceDeleted);
                None
            }
            Some(Farewell::Unserved(why)) => {
                self.tell_of_finalizers();
                self.crew.dismiss_waiting();
                self.crew.settle(exit).await;
                let known = self.seen.drain();
                for (_, object) in &known {
                    self.serving.facilities.indexes.remove(&Owner::of(object.header()));
                }
                let keys = known.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
                self.let_go(&keys, why);
                None
            }
            None => {
                self.crew.finish().await;
                None
            }
        }
    }

    /// Nobody takes the finalizer off objects that are not watched. Neither does a restart, but there it is less of a surprise.
    fn tell_of_finalizers(&self) {
        let handlers = &self.serving.handlers;
        let mut all = handlers.changing.iter().chain(&handlers.spawning);
        if all.any(|it| it.requires_finalizer()) {
            tracing::warn!(
                target: "kopf.watching",
                "No handler wants {} any more. Its objects keep the finalizer {} until one does, and cannot be deleted \
                 before: declare any handler of it, and they are let go.",
                self.name(),
                self.serving.settings.persistence.finalizer
            );
        }
    }

    /// Nothing remains of objects that are not served any more.
    fn let_go(&self, keys: &[Key], why: StopReason) {
        let forgotten = keys.iter().filter_map(|it| self.serving.memories.forget(it));
        for background in forgotten.filter_map(|it| it.background) {
            background.dismiss(&self.serving.background, why);
        }
    }
}
