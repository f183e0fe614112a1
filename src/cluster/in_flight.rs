//! Counts the requests that are in flight.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The mutating requests that have no response yet: those of the operator and those of its scripts. Clones share the number.
#[derive(Clone, Debug, Default)]
pub struct MutatingRequests(Arc<AtomicUsize>);

/// A request in flight, until it is dropped.
pub(super) struct InFlight(Arc<AtomicUsize>);

impl MutatingRequests {
    /// Returns how many are in flight.
    pub fn in_flight(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, until the result is dropped.
    pub(super) fn begin(&self) -> InFlight {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(&self.0))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
