//! The workers of one stream: a queue for each object with pending events, and a worker as soon as a permit is free.
//!
//! Before: `mod.rs`, which delivers the events. After: `reactor/object/worker.rs`.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::handling::turns::InTurns;
use crate::logic::generation::Version;
use crate::reactor::{
    object::{
        context::SharedContext,
        memory::Key,
        permits::{WorkerPermit, WorkerPermits},
        queue::{Event, ObjectQueue},
        worker::Worker,
    },
    streams::backlog::Backlog,
};

/// The workers of a stream, and the objects that wait for one.
pub(in crate::reactor) struct WorkerPool {
    /// The context in which the workers find their handlers.
    shared: SharedContext,
    /// The queues of objects that have a worker or wait for one.
    queues: BTreeMap<Key, Arc<ObjectQueue>>,
    workers: JoinSet<Key>,
    permits: WorkerPermits,
    backlog: Backlog,
    /// Whether handlers must see each event.
    keeps_steps: bool,
    /// Whether no more events will arrive.
    is_ending: bool,
}

/// A worker that has ended.
pub(super) struct Finished {
    pub(super) key: Key,
    /// The version to which its object was shown.
    pub(super) shown: Version,
}

impl WorkerPool {
    /// Creates an empty pool.
    pub(super) fn new(shared: SharedContext) -> Self {
        let context = shared.get();
        WorkerPool {
            shared,
            queues: BTreeMap::new(),
            workers: JoinSet::new(),
            permits: WorkerPermits::new(context.settings.queueing.worker_limit),
            backlog: Backlog::default(),
            keeps_steps: !context.handlers.watching.is_empty(),
            is_ending: false,
        }
    }

    /// Sets whether handlers must see each event from now on.
    pub(in crate::reactor) fn keep_steps(&mut self, keeps_steps: bool) {
        self.keeps_steps = keeps_steps;
        self.queues.values().for_each(|it| it.keep_steps(keeps_steps));
    }

    /// Returns the version to which an object was shown, as far as the queue of its worker has stored it.
    pub(in crate::reactor) fn shown(&self, key: &Key) -> Version {
        self.queues.get(key).map(|it| it.shown()).unwrap_or_default()
    }

    /// Puts an event into the queue of its object.
    pub(super) fn dispatch(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        let refused = match self.queues.get(key) {
            Some(queue) => queue.push(event).err(),
            None => Some(event),
        };
        match refused {
            Some(event) => self.open(key, event),
            // The object may have been waiting as a listed one.
            None if is_live && self.backlog.has(key) => self.backlog.add(key, true),
            None => {}
        }
    }

    /// Queues an object for its worker to handle it again, unless a newer event is waiting, which reaches the same handlers.
    pub(in crate::reactor) fn recheck(&mut self, key: &Key, event: Event) {
        match self.queues.get(key) {
            Some(queue) if !queue.is_closed() => {
                let _is_needed = queue.push_if_idle(event);
            }
            Some(_) | None => self.dispatch(key, event),
        }
    }

    /// Notes that the stream has read an event: more may follow.
    pub(super) fn postpone(&self) {
        self.permits.postpone();
    }

    /// Waits until a worker has ended, and returns it, or until a permit is free for a waiting object. Cancel-safe.
    pub(super) async fn next_finished(&mut self) -> Option<Finished> {
        tokio::select! {
            biased; // ended workers first: they release permits
            Some(ended) = self.workers.join_next() => self.forget(ended.ok()),
            () = self.permits.released(), if !self.backlog.is_empty() => {
                self.start_waiting();
                None
            }
            else => std::future::pending().await,
        }
    }

    /// Returns the number of objects that are waiting for a worker.
    pub(super) fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Drops the objects that are waiting for a worker.
    pub(super) fn drop_waiting(&mut self) {
        self.backlog = Backlog::default();
    }

    /// Ends while the operator keeps running: waits until the workers finish all pending events, without a time limit.
    pub(super) async fn settle(&mut self, exit: &CancellationToken) {
        self.is_ending = true;
        self.queues.values().for_each(|it| it.end());
        loop {
            self.start_waiting();
            if self.workers.is_empty() {
                return;
            }
            tokio::select! {
                biased; // the end of the operator limits the wait
                () = exit.cancelled() => return self.finish().await,
                _finished = self.next_finished() => {}
            }
        }
    }

    /// Ends with the operator: waits until the workers finish their cycles, for at most `settings.queueing.exit_timeout`.
    pub(super) async fn finish(&mut self) {
        self.queues.values().for_each(|it| it.end());
        let all_ended = async { while self.workers.join_next().await.is_some() {} };
        let context = self.shared.get();
        if time::timeout(context.settings.queueing.exit_timeout, all_ended).await.is_err() {
            let left = self.workers.len();
            tracing::warn!(
                target: "kopf.queue",
                "Unprocessed streams left for {left} objects of {}: their handlers are interrupted.",
                context.resource
            );
            self.workers.shutdown().await;
        }
    }

    /// Opens a queue, and starts its worker as soon as a permit is free.
    fn open(&mut self, key: &Key, event: Event) {
        let is_live = event.event_type.is_some();
        let numbers = Arc::clone(&self.shared.get().numbers);
        let queue = Arc::new(ObjectQueue::new(self.keeps_steps, numbers));
        // The queue of a worker that has just ended may still be present.
        queue.show(self.shown(key));
        // A new queue is never closed.
        drop(queue.push(event));
        self.queues.insert(key.clone(), queue);
        match self.permits.try_acquire().filter(|_| self.backlog.is_empty()) {
            Some(permit) => self.spawn(key.clone(), permit),
            None => self.backlog.add(key, is_live),
        }
    }

    /// Starts workers for waiting objects, as many as permits allow.
    fn start_waiting(&mut self) {
        while !self.backlog.is_empty() {
            let Some(permit) = self.permits.try_acquire() else { return };
            let Some(key) = self.backlog.next() else { return };
            self.spawn(key, permit);
        }
    }

    fn spawn(&mut self, key: Key, permit: WorkerPermit) {
        let Some(queue) = self.queues.get(&key).map(Arc::clone) else { return };
        if self.is_ending {
            queue.end();
        }
        let lingers = !self.permits.are_limited();
        let shared = self.shared.clone();
        let busy = shared.get().health.metrics().busy();
        let worker = Worker { shared, key: key.clone(), queue, permit, lingers };
        // Boxed separately: tasks are aligned to cache lines, which leaves gaps between big ones when thousands come and go.
        self.workers.spawn(InTurns::new(Box::pin(async move {
            let _busy = busy;
            worker.run().await;
            key
        })));
    }

    /// Drops the queue of a worker that has ended, unless the next worker is already running.
    fn forget(&mut self, ended: Option<Key>) -> Option<Finished> {
        let key = ended?;
        let queue = self.queues.get(&key).filter(|it| it.is_closed())?;
        let shown = queue.shown();
        self.queues.remove(&key);
        Some(Finished { key, shown })
    }
}
