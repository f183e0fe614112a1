//! One task per resource and namespace: brings each event to the queue of its object.
//!
//! Hop 2 of the walk. Before: `cluster/watch.rs`. After: `worker.rs`. The task never waits for a worker, so a slow handler
//! cannot make the server cut our watch.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};
use tokio::{sync::Semaphore, task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use super::{
    backlog::Backlog,
    memory::Key,
    place::Place,
    queue::{Event, Queue},
    serving::Serving,
    worker::Worker,
};
use crate::logic::peering::whereabouts;
use crate::ports::{ApiError, Extent, StreamEvent, StreamTarget};

/// The events of one stream.
type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// One stream and its workers.
pub(super) struct Streaming {
    serving: Arc<Serving>,
    namespace: Option<Arc<str>>,
    queues: BTreeMap<Key, Arc<Queue>>,
    workers: JoinSet<Key>,
    /// `settings.queueing.worker_limit`
    places: Option<Arc<Semaphore>>,
    /// What a standby would do if it led.
    backlog: Backlog,
}

impl Streaming {
    /// A stream of one namespace, or of the whole cluster.
    pub(super) fn new(serving: Arc<Serving>, namespace: Option<Arc<str>>) -> Self {
        let places = serving.settings.queueing.worker_limit.map(|it| Arc::new(Semaphore::new(it)));
        let backlog = Backlog::new(serving.leadership.is_leading());
        Streaming {
            serving,
            namespace,
            queues: BTreeMap::new(),
            workers: JoinSet::new(),
            places,
            backlog,
        }
    }

    /// Runs until it is told to stop; then lets the workers finish, but not for long.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let target = StreamTarget {
            resource: Arc::clone(&self.serving.resource),
            namespace: self.namespace.clone(),
            extent: Extent::Whole,
            settings: Arc::clone(&self.serving.settings),
        };
        while self.sit_out_pause(&stop).await {
            let pauses = self.serving.pauses.count();
            let events = self.serving.cluster.stream(target.clone());
            self.listen(events, pauses, &stop).await;
        }
        self.serving.hold.end();
        self.finish().await;
    }

    /// Takes events until the operator is told to stop, or pauses for another time.
    async fn listen(&mut self, mut events: Events, count: u64, stop: &CancellationToken) {
        let (pauses, leadership) = (self.serving.pauses.clone(), self.serving.leadership.clone());
        let mut paused = std::pin::pin!(pauses.next(count));
        let mut leading = std::pin::pin!(leadership.until_leading());
        loop {
            tokio::select! {
                biased; // stop first: nothing new begins after it; then make room; then more work
                () = stop.cancelled() => break,
                () = &mut paused => break,
                () = &mut leading, if self.backlog.is_standby() => self.take_over(),
                Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
                event = events.next() => match event {
                    Some(Ok(StreamEvent::Object(event_type, object))) => self.take(Event { event_type, object, for_indexes: false }),
                    Some(Ok(StreamEvent::Listed)) => self.listed(),
                    Some(Err(error)) => self.report(&error),
                    None => break,
                },
            }
        }
    }

    /// Waits while the operator is paused; tells whether to go on. Workers finish what they have.
    async fn sit_out_pause(&mut self, stop: &CancellationToken) -> bool {
        let pauses = self.serving.pauses.clone();
        if pauses.is_paused() {
            let blockers = pauses.blockers().join(", ");
            let text =
                format!("Pausing the watch-stream for {} (blockers: {blockers}).", self.place());
            tracing::debug!(target: "kopf.watching", "{text}");
            // The list after the pause tells more.
            self.backlog.clear();
            let mut resumed = std::pin::pin!(pauses.until(false));
            loop {
                tokio::select! {
                    biased; // as in `listen`
                    () = stop.cancelled() => break,
                    Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
                    () = &mut resumed => {
                        tracing::debug!(target: "kopf.watching", "Resuming the watch-stream for {}.", self.place());
                        break;
                    }
                }
            }
        }
        !stop.is_cancelled()
    }

    /// From now on this replica acts: on what it has seen so far first.
    fn take_over(&mut self) {
        for event in self.backlog.take_over() {
            self.dispatch(event);
        }
    }

    fn listed(&mut self) {
        self.backlog.settle();
        self.serving.hold.listed();
    }

    /// An event of the stream: worked on by a leader, noted by a standby.
    fn take(&mut self, event: Event) {
        if !self.backlog.is_standby() {
            return self.dispatch(event);
        }
        self.backlog.note(&event);
        if !self.serving.handlers.indexing.is_empty() {
            self.dispatch(Event { for_indexes: true, ..event });
        }
    }

    fn dispatch(&mut self, event: Event) {
        self.serving.hold.seen(event.object.header());
        let key = Key::of(event.object.header());
        let refused = match self.queues.get(&key) {
            Some(queue) => queue.push(event).err(),
            None => Some(event),
        };
        if let Some(event) = refused {
            self.hire(key, event);
        }
    }

    /// A new worker with a new queue.
    fn hire(&mut self, key: Key, event: Event) {
        let queue = Arc::new(Queue::default());
        // A fresh queue refuses nothing.
        drop(queue.push(event));
        self.queues.insert(key.clone(), Arc::clone(&queue));
        let place = Place::of(self.places.clone());
        let worker = Worker { serving: Arc::clone(&self.serving), key: key.clone(), queue, place };
        self.workers.spawn(async move {
            worker.run().await;
            key
        });
    }

    /// Drops the queue of a worker that has ended, unless its successor already works.
    fn forget(&mut self, ended: Option<Key>) {
        let Some(key) = ended else { return };
        if self.queues.get(&key).is_some_and(|it| it.is_closed()) {
            self.queues.remove(&key);
        }
    }

    async fn finish(mut self) {
        self.queues.values().for_each(|it| it.end());
        let all_ended = async { while self.workers.join_next().await.is_some() {} };
        let timeout = self.serving.settings.queueing.exit_timeout;
        if time::timeout(timeout, all_ended).await.is_err() {
            let left = self.workers.len();
            tracing::warn!(
                target: "kopf.queueing",
                "Unprocessed streams left for {left} objects of {}: their handlers are interrupted.",
                self.serving.resource
            );
            self.workers.shutdown().await;
        }
    }

    /// The stream goes on trying; the user should know why nothing comes.
    fn report(&self, error: &ApiError) {
        let place = self.place();
        let hint = error.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        tracing::error!(
            target: "kopf.watching",
            "Watching {place} has failed and will be tried again: {error}.{hint}"
        );
    }

    /// The resource and where it is watched.
    fn place(&self) -> String {
        let place = whereabouts(self.namespace.as_deref());
        format!("{} {place}", self.serving.resource)
    }
}
