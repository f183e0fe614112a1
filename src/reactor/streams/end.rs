//! The end of a stream, and the effect on its objects.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{KnownObjects, Stream};
use crate::handling::time_slice::TimeSlice;
use crate::logic::{
    background::{indexing::Owner, stopping::StopReason},
    object::reason::EventType,
};
use crate::reactor::object::{memory::Key, queue::Event};

/// The reason why a stream ends before the operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum StreamEnd {
    /// Its resource or its namespace is no longer in the cluster, and neither are its objects.
    Gone,
    /// No handler selects the resource any more; daemons and timers are stopped for this reason.
    Unserved(StopReason),
    /// Another stream takes over its objects.
    Replaced,
}

impl Stream {
    /// Waits until the workers finish. `end` is `None` at the end of the operator. Returns the state for the next stream of the same
    /// target.
    pub(super) async fn finish(
        mut self,
        end: Option<StreamEnd>,
        exit: &CancellationToken,
    ) -> Option<KnownObjects> {
        // Handlers of any version no longer wait for the index entries of this stream.
        self.relist = None;
        self.context.hold.end();
        self.shared.get().hold.end();
        match end {
            Some(StreamEnd::Replaced) => {
                self.workers.settle(exit).await;
                Some(self.known)
            }
            Some(StreamEnd::Gone) => {
                let known = self.known.drain();
                let keys = known.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                for (key, object) in known {
                    self.bring(&key, Event::new(Some(EventType::Deleted), Arc::new(object)));
                }
                self.workers.settle(exit).await;
                self.forget(&keys, StopReason::ResourceDeleted);
                None
            }
            Some(StreamEnd::Unserved(why)) => {
                self.warn_of_finalizers();
                self.workers.drop_waiting();
                self.workers.settle(exit).await;
                let known = self.known.drain();
                let mut slice = TimeSlice::start();
                for (_, object) in &known {
                    self.context.services.indexes.remove(&Owner::of(object.header())).await;
                    slice.yield_if_over().await;
                }
                let keys = known.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
                self.forget(&keys, why);
                None
            }
            None => {
                self.workers.finish().await;
                None
            }
        }
    }

    /// Warns that objects which are no longer watched keep the finalizer. They also keep it after a restart, but then it is less
    /// surprising.
    fn warn_of_finalizers(&self) {
        let handlers = &self.context.handlers;
        let mut all = handlers.changing.iter().chain(&handlers.spawning);
        if all.any(|it| it.requires_finalizer()) {
            tracing::warn!(
                target: "kopf.watch",
                "No handler selects {} any more. Its objects keep the finalizer {} and cannot be deleted: declare a handler \
                 for it to release them.",
                self.name(),
                self.context.settings.persistence.finalizer
            );
        }
    }

    /// Drops objects that are no longer served, and stops their daemons and timers.
    fn forget(&self, keys: &[Key], why: StopReason) {
        let forgotten = keys.iter().filter_map(|it| self.context.memories.forget(it));
        for background in forgotten.filter_map(|it| it.background) {
            background.dismiss(&self.context.background, why);
        }
    }
}
