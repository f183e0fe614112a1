//! The generations of scripts that serve calls.

use std::sync::Arc;

use parking_lot::Mutex;

use super::CallServices;
use crate::logic::generation::Generation;

/// A generation that serves calls, and the services of those calls. Several can be live at once: every caller holds the generation that it
/// makes calls for.
#[derive(Clone, Debug, Default)]
pub struct LiveGeneration {
    /// The handlers of this generation.
    pub generation: Generation,
    /// Its indexes and the operator's services.
    pub services: Arc<CallServices>,
}

/// The generation that took over last, which runs the activities of the operator. Clones share it.
///
/// Callers that need one generation across several steps must call [`Current::get`] once.
#[derive(Clone, Debug, Default)]
pub struct Current(Arc<Mutex<Arc<LiveGeneration>>>);

impl Current {
    /// Creates a handle to the first generation.
    pub fn new(first: LiveGeneration) -> Self {
        Current(Arc::new(Mutex::new(Arc::new(first))))
    }

    /// Returns the generation that took over last.
    pub fn get(&self) -> Arc<LiveGeneration> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the generation with the next one, and returns that.
    pub fn set(&self, next: LiveGeneration) -> Arc<LiveGeneration> {
        let next = Arc::new(next);
        // Dropped after the lock is released, because this may end a virtual machine.
        let _before = std::mem::replace(&mut *self.0.lock(), Arc::clone(&next));
        next
    }
}
