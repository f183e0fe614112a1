//! State of a reconcile handler in addition to that of a timer: requests of calls, and the end of its object.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
    task::{Wake, Waker},
    time::Duration,
};

use parking_lot::Mutex;

use super::current_handlers::BoundHandler;
use crate::call::{CallServices, PendingCall, name_key};
use crate::features::reconcile::{Memory, UnownedChildren};
use crate::logic::{
    background::indexing::IndexKey,
    object::{Header, Object},
};
use crate::telemetry::Metrics;

const RUNNING: u8 = 0;
const FINALIZING: u8 = 1;
const FINALIZED: u8 = 2;

/// The state of a reconcile handler for one object.
pub(super) struct ReconcileLevel {
    handler: Arc<str>,
    keys: Box<[IndexKey]>,
    pub(super) call: Arc<PendingCall>,
    phase: AtomicU8,
    memory: Mutex<Memory>,
}

/// A waker that wakes a daemon without keeping it.
struct WeakWaker<D>(Weak<D>);

impl<D: Wake + Send + Sync + 'static> Wake for WeakWaker<D> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(daemon) = self.0.upgrade() {
            daemon.wake_by_ref();
        }
    }
}

impl ReconcileLevel {
    /// Creates the state of a daemon, and notes that events may request its calls.
    pub(super) fn new<D: Wake + Send + Sync + 'static>(
        daemon: &Weak<D>,
        object: &Header,
        of: LevelBase<'_>,
    ) -> Self {
        let BoundHandler { handler, services, relations } = of.bound;
        let waker = Waker::from(Arc::new(WeakWaker(Weak::clone(daemon))));
        let queue = of.metrics.queue(format!("reconcile/{}", handler.id));
        let call = Arc::new(PendingCall::new(waker, queue));
        let uid = IndexKey::text(object.uid.as_deref().unwrap_or_default());
        let name = relations.has_names.then(|| {
            name_key(object.namespace.as_deref(), object.name.as_deref().unwrap_or_default())
        });
        let keys: Box<[_]> = [uid].into_iter().chain(name).collect();
        let key = Arc::clone(&relations.reconciler);
        services.reconcilers.add(&key, &keys, &call);
        let (phase, memory) = (AtomicU8::new(RUNNING), Mutex::new(Memory::new(of.unowned)));
        ReconcileLevel { handler: key, keys, call, phase, memory }
    }

    /// Returns whether the object was not finalized, and is not being finalized.
    pub(super) fn is_running(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RUNNING
    }

    /// Notes that the object is being finalized from now on.
    pub(super) fn finalize(&self) {
        self.phase.store(FINALIZING, Ordering::Release);
    }

    /// Takes the state that is kept between calls.
    pub(super) fn take_memory(&self) -> Memory {
        std::mem::take(&mut *self.memory.lock())
    }

    /// Stores the state that is kept between calls.
    pub(super) fn set_memory(&self, memory: Memory) {
        *self.memory.lock() = memory;
    }

    /// Stores whether a call is not needed as long as the children stay as the last one has left them.
    pub(super) fn set_settled(&self, is_settled: bool) {
        self.memory.lock().is_settled = is_settled;
    }

    /// Takes the unowned children, for the next version of the handler.
    pub(super) fn take_unowned(&self) -> UnownedChildren {
        self.memory.lock().take_unowned()
    }

    /// Returns whether the object is being finalized.
    pub(super) fn is_finalizing(&self) -> bool {
        self.phase.load(Ordering::Acquire) == FINALIZING
    }

    /// Returns whether the object needs no more work.
    pub(super) fn is_finalized(&self) -> bool {
        self.phase.load(Ordering::Acquire) == FINALIZED
    }

    /// Notes that the object needs no more work: it is finalized, or gone.
    pub(super) fn finalized(&self) {
        self.phase.store(FINALIZED, Ordering::Release);
    }

    /// Notes the end of the daemon: events request no more calls.
    pub(super) fn end(&self, services: &CallServices) {
        services.reconcilers.remove(&self.handler, &self.keys, &self.call);
        self.call.take();
    }

    /// Returns the earliest moment of the next call.
    pub(super) fn not_before(&self) -> Duration {
        self.memory.lock().not_before.map(Duration::from).unwrap_or_default()
    }

    /// Stores the status from the response to the operator's own request.
    pub(super) fn note_response(&self, object: &Object) {
        self.memory.lock().note_response(object);
    }
}

/// The state that reconcile handlers share, in addition to that of all daemons and timers.
pub(super) struct LevelBase<'a> {
    pub(super) bound: &'a BoundHandler,
    pub(super) metrics: &'a Metrics,
    /// The unowned children of the previous version of the handler.
    pub(super) unowned: UnownedChildren,
}
