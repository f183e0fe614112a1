//! The generations of scripts that serve calls.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Facilities;
use crate::logic::generation::Generation;

/// A generation that serves calls, and what they can reach. Several can be live at once: whoever makes calls holds the one that it
/// makes them for.
#[derive(Clone, Debug, Default)]
pub struct LiveGeneration {
    /// Its handlers.
    pub generation: Generation,
    /// With its indexes.
    pub facilities: Arc<Facilities>,
}

/// The generation that took over last, which runs the activities of the operator. Clones share it.
///
/// Callers that need one generation across several steps must call [`Current::get`] once.
#[derive(Clone, Debug, Default)]
pub struct Current(Arc<Mutex<Arc<LiveGeneration>>>);

impl Current {
    /// Holds the first generation.
    pub fn new(first: LiveGeneration) -> Self {
        Current(Arc::new(Mutex::new(Arc::new(first))))
    }

    /// Returns the generation that took over last.
    pub fn get(&self) -> Arc<LiveGeneration> {
        Arc::clone(&self.0.lock())
    }

    /// Puts the next generation in its place, and returns it.
    pub fn set(&self, next: LiveGeneration) -> Arc<LiveGeneration> {
        let next = Arc::new(next);
        // The one before is dropped after the lock, as that may be the end of a virtual machine.
        let _before = std::mem::replace(&mut *self.0.lock(), Arc::clone(&next));
        next
    }
}
