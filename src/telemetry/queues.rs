//! The metrics of work queues, with the names of client-go.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use super::labels::QueueLabels;

/// Bucket bounds in seconds: from an idle operator to one with a backlog.
const SECONDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

type Histograms = Family<QueueLabels, Histogram, fn() -> Histogram>;

/// The queues of all resources. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    waiting: Histograms,
    working: Histograms,
    /// The queues so far, by name: each object of a reconcile handler has that of its handler.
    known: Arc<Mutex<BTreeMap<String, Arc<QueueSeries>>>>,
}

/// The queue of the objects of one resource.
#[derive(Debug)]
pub struct QueueSeries {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waiting: Histogram,
    working: Histogram,
}

/// An object that waits in a queue, until it is dropped.
#[derive(Debug)]
pub struct QueuedObject {
    queue: Arc<QueueSeries>,
    since: Instant,
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Queues {
    fn default() -> Self {
        let [waiting, working] =
            [histogram as fn() -> Histogram; 2].map(Family::new_with_constructor);
        let (depth, adds, retries) = (Family::default(), Family::default(), Family::default());
        Queues { depth, adds, retries, waiting, working, known: Arc::default() }
    }
}

impl Default for QueueSeries {
    fn default() -> Self {
        QueueSeries {
            depth: Gauge::default(),
            adds: Counter::default(),
            retries: Counter::default(),
            waiting: histogram(),
            working: histogram(),
        }
    }
}

impl Queues {
    /// Returns the queue of this name.
    pub(super) fn of(&self, name: String) -> Arc<QueueSeries> {
        let mut known = self.known.lock();
        if let Some(series) = known.get(&name) {
            return Arc::clone(series);
        }
        let labels = QueueLabels { name: name.clone() };
        let series = Arc::new(QueueSeries {
            depth: self.depth.get_or_create(&labels).clone(),
            adds: self.adds.get_or_create(&labels).clone(),
            retries: self.retries.get_or_create(&labels).clone(),
            waiting: self.waiting.get_or_create(&labels).clone(),
            working: self.working.get_or_create(&labels).clone(),
        });
        known.insert(name, Arc::clone(&series));
        series
    }

    /// Adds all queues to a page.
    pub(super) fn register(&self, page: &mut Registry) {
        page.register("workqueue_depth", "Objects that wait to be handled", self.depth.clone());
        page.register("workqueue_adds", "How often objects began to wait", self.adds.clone());
        page.register(
            "workqueue_retries",
            "Pauses after errors, and attempts of handlers that will be retried",
            self.retries.clone(),
        );
        page.register_with_unit(
            "workqueue_queue_duration",
            "How long objects waited to be handled",
            Unit::Seconds,
            self.waiting.clone(),
        );
        page.register_with_unit(
            "workqueue_work_duration",
            "How long objects were being handled, without pauses",
            Unit::Seconds,
            self.working.clone(),
        );
    }
}

impl QueueSeries {
    /// Counts an object that begins to wait.
    pub fn add(self: &Arc<Self>) -> QueuedObject {
        self.adds.inc();
        self.depth.inc();
        QueuedObject { queue: Arc::clone(self), since: Instant::now() }
    }

    /// Counts the work on an object.
    pub fn worked(&self, took: Duration) {
        self.working.observe(took.as_secs_f64());
    }

    /// Counts an object that will be handled again after an error.
    pub fn retried(&self) {
        self.retries.inc();
    }
}

impl QueuedObject {
    /// Ends the wait, because the object is being handled.
    pub fn end(self) {
        self.queue.waiting.observe(self.since.elapsed().as_secs_f64());
    }
}

impl Drop for QueuedObject {
    fn drop(&mut self) {
        self.queue.depth.dec();
    }
}
