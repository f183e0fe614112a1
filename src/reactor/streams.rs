//! One task per resource and namespace: brings each event to the queue of its object.
//!
//! Hop 2 of the walk. Before: `cluster/watch.rs`. After: `worker.rs`. The task never waits for a worker, so a slow handler
//! cannot make the server cut our watch.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt as _;
use tokio::{sync::Semaphore, task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use super::{
    memory::Key,
    place::Place,
    queue::{Event, Queue},
    serving::Serving,
    worker::Worker,
};
use crate::ports::{ApiError, Extent, StreamEvent, StreamTarget};

/// One stream and its workers.
pub(super) struct Streaming {
    serving: Arc<Serving>,
    namespace: Option<Arc<str>>,
    queues: BTreeMap<Key, Arc<Queue>>,
    workers: JoinSet<Key>,
    /// `settings.queueing.worker_limit`
    places: Option<Arc<Semaphore>>,
}

impl Streaming {
    /// A stream of one namespace, or of the whole cluster.
    pub(super) fn new(serving: Arc<Serving>, namespace: Option<Arc<str>>) -> Self {
        let places = serving.settings.queueing.worker_limit.map(|it| Arc::new(Semaphore::new(it)));
        Streaming { serving, namespace, queues: BTreeMap::new(), workers: JoinSet::new(), places }
    }

    /// Runs until it is told to stop; then lets the workers finish, but not for long.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let target = StreamTarget {
            resource: Arc::clone(&self.serving.resource),
            namespace: self.namespace.clone(),
            extent: Extent::Whole,
            settings: Arc::clone(&self.serving.settings),
        };
        let mut events = self.serving.cluster.stream(target);
        loop {
            tokio::select! {
                biased; // stop first: nothing new begins after it; then make room; then more work
                () = stop.cancelled() => break,
                Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
                event = events.next() => match event {
                    Some(Ok(StreamEvent::Object(event_type, object))) => self.dispatch(Event { event_type, object }),
                    Some(Ok(StreamEvent::Listed)) => self.serving.hold.listed(),
                    Some(Err(error)) => self.report(&error),
                    None => break,
                },
            }
        }
        drop(events);
        self.serving.hold.end();
        self.finish().await;
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
        let place = self
            .namespace
            .as_deref()
            .map_or_else(|| "cluster-wide".into(), |it| format!("in '{it}'"));
        let hint = error.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        tracing::error!(
            target: "kopf.watching",
            "Watching {} {place} has failed and will be tried again: {error}.{hint}",
            self.serving.resource
        );
    }
}
