//! The workers of one stream: one queue for each object that has something to do, and a worker as soon as there is a place.
//!
//! Before: `mod.rs`, which brings the events. After: `worker.rs`.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::reactor::{
    backlog::Backlog,
    memory::Key,
    place::{Place, Places},
    post::Post,
    queue::{Event, Queue},
    serving::Turn,
    worker::Worker,
};

/// Who works on the objects of a stream, and who waits to.
pub(super) struct Crew {
    /// Where the workers find the handlers of the present generation.
    post: Post,
    /// Of the objects with a worker, and of those that wait for one.
    queues: BTreeMap<Key, Arc<Queue>>,
    workers: JoinSet<Key>,
    places: Places,
    backlog: Backlog,
    /// Somebody must see each event.
    keeps_steps: bool,
    /// Nothing more will come.
    is_ending: bool,
}

/// What a worker leaves at its end.
pub(super) struct Retired {
    pub(super) key: Key,
    /// The latest handlers that have seen its object.
    pub(super) shown: Turn,
}

impl Crew {
    /// Nobody works yet.
    pub(super) fn new(post: Post) -> Self {
        let serving = post.get();
        Crew {
            post,
            queues: BTreeMap::new(),
            workers: JoinSet::new(),
            places: Places::new(serving.settings.queueing.worker_limit),
            backlog: Backlog::default(),
            keeps_steps: !serving.handlers.watching.is_empty(),
            is_ending: false,
        }
    }

    /// From now on each event must be seen, or need not be.
    pub(super) fn keep_steps(&mut self, keeps_steps: bool) {
        self.keeps_steps = keeps_steps;
        self.queues.values().for_each(|it| it.keep_steps(keeps_steps));
    }

    /// The latest handlers that have seen an object, as far as its worker knows: the first, if it has none.
    pub(super) fn shown(&self, key: &Key) -> Turn {
        self.queues.get(key).map_or(0, |it| it.shown())
    }

    /// Brings an event to the queue of its object.
    pub(super) fn dispatch(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        let refused = match self.queues.get(key) {
            Some(queue) => queue.push(event).err(),
            None => Some(event),
        };
        match refused {
            Some(event) => self.open(key, event),
            // It may have waited as one of a listing.
            None if is_live && self.backlog.has(key) => self.backlog.add(key, true),
            None => {}
        }
    }

    /// Has another look at an object, unless something newer waits for its worker, which comes to the same handlers.
    pub(super) fn look_at(&mut self, key: &Key, event: Event) {
        match self.queues.get(key) {
            Some(queue) if !queue.is_closed() => {
                let _is_needed = queue.push_if_idle(event);
            }
            Some(_) | None => self.dispatch(key, event),
        }
    }

    /// The stream has read an event: there may be more.
    pub(super) fn postpone(&self) {
        self.places.postpone();
    }

    /// Waits until a worker has ended, or until there is a place for those who wait. Can be dropped and asked again.
    pub(super) async fn tend(&mut self) -> Option<Retired> {
        tokio::select! {
            biased; // those that go first: they make room
            Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
            () = self.places.freed(), if !self.backlog.is_empty() => {
                self.relieve();
                None
            }
            else => std::future::pending().await,
        }
    }

    /// Those who wait for a place need none any more.
    pub(super) fn dismiss_waiting(&mut self) {
        self.backlog = Backlog::default();
    }

    /// Ends within a running operator: workers finish what there is to do, in their own time.
    pub(super) async fn settle(&mut self, exit: &CancellationToken) {
        self.is_ending = true;
        self.queues.values().for_each(|it| it.end());
        loop {
            // One leaves, another one comes.
            self.relieve();
            if self.workers.is_empty() {
                return;
            }
            tokio::select! {
                biased; // the end of the operator cuts it short
                () = exit.cancelled() => return self.finish().await,
                _retired = self.tend() => {}
            }
        }
    }

    /// Ends with the operator: workers finish what they do, but not for long.
    pub(super) async fn finish(&mut self) {
        self.queues.values().for_each(|it| it.end());
        let all_ended = async { while self.workers.join_next().await.is_some() {} };
        let serving = self.post.get();
        if time::timeout(serving.settings.queueing.exit_timeout, all_ended).await.is_err() {
            let left = self.workers.len();
            tracing::warn!(
                target: "kopf.queueing",
                "Unprocessed streams left for {left} objects of {}: their handlers are interrupted.",
                serving.resource
            );
            self.workers.shutdown().await;
        }
    }

    /// A new queue, and a worker as soon as there is a place.
    fn open(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        let queue = Arc::new(Queue::new(self.keeps_steps));
        // That of a worker which has just ended may still be here.
        queue.show(self.shown(key));
        // A fresh queue refuses nothing.
        drop(queue.push(event));
        self.queues.insert(key.clone(), queue);
        match self.places.try_take().filter(|_| self.backlog.is_empty()) {
            Some(place) => self.hire(key.clone(), place),
            None => self.backlog.add(key, is_live),
        }
    }

    /// Gives free places to those who wait.
    fn relieve(&mut self) {
        while !self.backlog.is_empty() {
            let Some(place) = self.places.try_take() else { return };
            let Some(key) = self.backlog.next() else { return };
            self.hire(key, place);
        }
    }

    fn hire(&mut self, key: Key, place: Place) {
        let Some(queue) = self.queues.get(&key).map(Arc::clone) else { return };
        if self.is_ending {
            queue.end();
        }
        let lingers = !self.places.are_limited();
        let post = self.post.clone();
        let busy = post.get().health.metrics().busy();
        let worker = Worker { post, key: key.clone(), queue, place, lingers };
        // In a box of its own: tasks are aligned to cache lines, which leaves holes between big ones when thousands come and go.
        self.workers.spawn(Box::pin(async move {
            let _busy = busy;
            worker.run().await;
            key
        }));
    }

    /// Drops the queue of a worker that has ended, unless its successor already works.
    fn forget(&mut self, ended: Option<Key>) -> Option<Retired> {
        let key = ended?;
        let queue = self.queues.get(&key).filter(|it| it.is_closed())?;
        let shown = queue.shown();
        self.queues.remove(&key);
        Some(Retired { key, shown })
    }
}
