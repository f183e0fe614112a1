//! Wakes the objects of reconcile handlers when their children, or other related objects, change.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
    task::Waker,
};

use parking_lot::Mutex;

use super::Related;
use crate::logic::{background::indexing::IndexKey, object::resource::Resource};
use crate::telemetry::{QueueSeries, QueuedObject};

/// The objects of all reconcile handlers of an operator. Clones share them.
#[derive(Clone, Default)]
pub struct Reconcilers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By the id of the handler, then by the keys of the object: its uid, and its namespace and name if others name it.
    calls: BTreeMap<Arc<str>, BTreeMap<IndexKey, Vec<Weak<PendingCall>>>>,
    /// The properties that the objects in each index share.
    related: BTreeMap<Arc<str>, Related>,
}

/// The next call of a reconcile handler for an object: requested by any number of events.
pub struct PendingCall {
    /// The reasons as bits; none if no call is requested.
    reasons: AtomicU8,
    waker: Waker,
    /// Counts the objects that wait for a call.
    queue: Arc<QueueSeries>,
    waiting: Mutex<Option<QueuedObject>>,
}

/// Why an event requests a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallReason {
    /// A child of the object has changed.
    Child = 1,
    /// A watched object has changed.
    Watched = 2,
    /// The object itself has changed: earlier failures do not count any more.
    Object = 4,
}

/// The reasons of a requested call; none if no call is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallReasons(u8);

impl CallReasons {
    /// Returns whether no call is requested.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether this is one of the reasons.
    pub fn has(self, reason: CallReason) -> bool {
        self.0 & reason as u8 != 0
    }

    /// Returns whether only children have changed.
    pub fn are_children(self) -> bool {
        self.0 == CallReason::Child as u8
    }
}

impl PendingCall {
    /// Creates the pending call of an object, which `waker` wakes.
    pub fn new(waker: Waker, queue: Arc<QueueSeries>) -> Self {
        PendingCall { reasons: AtomicU8::new(0), waker, queue, waiting: Mutex::default() }
    }

    /// Requests the call, and wakes it unless it is already requested.
    pub fn request(&self, reason: CallReason) {
        if self.reasons.fetch_or(reason as u8, Ordering::AcqRel) == 0 {
            *self.waiting.lock() = Some(self.queue.add());
            self.waker.wake_by_ref();
        }
    }

    /// Returns whether the call was requested.
    pub fn is_requested(&self) -> bool {
        self.reasons.load(Ordering::Acquire) != 0
    }

    /// Takes the request: from now on, an event requests another call.
    pub fn take(&self) -> CallReasons {
        let reasons = CallReasons(self.reasons.swap(0, Ordering::AcqRel));
        if let Some(waiting) = self.waiting.lock().take() {
            waiting.end();
        }
        reasons
    }

    /// Returns the metrics of its queue.
    pub fn queue(&self) -> &Arc<QueueSeries> {
        &self.queue
    }
}

/// Returns the key of an object by its namespace and name, which differs from each uid.
pub fn name_key(namespace: Option<&str>, name: &str) -> IndexKey {
    IndexKey::Text(format!("{}/{name}", namespace.unwrap_or_default()).into())
}

impl Reconcilers {
    /// Adds an object of a handler.
    pub fn add(&self, handler: &Arc<str>, keys: &[IndexKey], call: &Arc<PendingCall>) {
        let mut state = self.0.lock();
        let of_handler = state.calls.entry(Arc::clone(handler)).or_default();
        for key in keys {
            // Most objects have one.
            let calls = of_handler.entry(key.clone()).or_insert_with(|| Vec::with_capacity(1));
            calls.retain(|it| it.strong_count() > 0);
            calls.push(Arc::downgrade(call));
        }
    }

    /// Removes an object of a handler.
    pub fn remove(&self, handler: &Arc<str>, keys: &[IndexKey], call: &Arc<PendingCall>) {
        let mut state = self.0.lock();
        let Some(of_handler) = state.calls.get_mut(handler) else { return };
        for key in keys {
            let Some(calls) = of_handler.get_mut(key) else { continue };
            calls.retain(|it| it.strong_count() > 0 && it.as_ptr() != Arc::as_ptr(call));
            if calls.is_empty() {
                of_handler.remove(key);
            }
        }
    }

    /// Requests calls of a handler for the objects of a key; [`IndexKey::Null`] means all objects.
    pub fn request(&self, handler: &str, key: &IndexKey, reason: CallReason) {
        let found: Vec<_> = {
            let state = self.0.lock();
            let Some(of_handler) = state.calls.get(handler) else { return };
            if *key == IndexKey::Null {
                of_handler.values().flatten().filter_map(Weak::upgrade).collect()
            } else {
                of_handler.get(key).into_iter().flatten().filter_map(Weak::upgrade).collect()
            }
        };
        // Without the lock: a woken task may take it.
        for call in &found {
            call.request(reason);
        }
    }

    /// Notes that objects of this resource are in an index.
    pub fn learn(&self, index: &Arc<str>, resource: &Arc<Resource>) {
        let mut state = self.0.lock();
        let kinds = &mut state.related.entry(Arc::clone(index)).or_default().kinds;
        if !kinds.iter().any(|it| it.is_described_as(resource)) {
            kinds.retain(|it| it != resource);
            kinds.push(Arc::clone(resource));
        }
    }

    /// Returns the properties that the objects in an index share. [`Reconcilers::learn`] was called for each of their resources before.
    pub fn related(&self, index: &str) -> Related {
        self.0.lock().related.get(index).cloned().unwrap_or_default()
    }
}

impl fmt::Debug for Reconcilers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handlers", self.0.lock().calls.len())
    }
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_requested() { "requested" } else { "not requested" })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, task::Waker};

    use super::{CallReason, PendingCall, Reconcilers, name_key};
    use crate::logic::background::indexing::IndexKey;
    use crate::telemetry::QueueSeries;

    fn added(
        reconcilers: &Reconcilers,
        handler: &Arc<str>,
        name: &str,
    ) -> ([IndexKey; 2], Arc<PendingCall>) {
        let call =
            Arc::new(PendingCall::new(Waker::noop().clone(), Arc::new(QueueSeries::default())));
        let keys =
            [IndexKey::Text(format!("uid of {name}").into()), name_key(Some("default"), name)];
        reconcilers.add(handler, &keys, &call);
        (keys, call)
    }

    #[test]
    fn an_event_of_a_child_requests_calls_for_its_parent_only() {
        let (reconcilers, handler) = (Reconcilers::default(), Arc::from("site"));
        let (keys, call) = added(&reconcilers, &handler, "one");
        let (_, other) = added(&reconcilers, &handler, "two");
        let (_, of_other_handler) = added(&reconcilers, &Arc::from("shop"), "one");
        for key in &keys {
            reconcilers.request("site", key, CallReason::Child);
            assert!(
                call.take().are_children()
                    && !other.is_requested()
                    && !of_other_handler.is_requested(),
                "{key:?}"
            );
        }

        reconcilers.request("site", &IndexKey::Null, CallReason::Watched);
        let all = [call.take(), other.take()];
        assert!(
            all.iter().all(|it| it.has(CallReason::Watched)) && !of_other_handler.is_requested()
        );
        reconcilers.remove(&handler, &keys, &call);
        for key in &keys {
            reconcilers.request("site", key, CallReason::Child);
        }
        assert!(!call.is_requested());
    }
}
