//! The generation of scripts that is served at the moment.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Facilities;
use crate::logic::generation::Generation;

/// A generation, and what its calls can reach.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// Its handlers.
    pub generation: Generation,
    /// With its indexes.
    pub facilities: Arc<Facilities>,
}

/// Where the present generation is found. Clones share it. Who needs one generation for several steps looks once.
#[derive(Clone, Debug, Default)]
pub struct Current(Arc<Mutex<Arc<Present>>>);

impl Current {
    /// The first one.
    pub fn new(present: Present) -> Self {
        Current(Arc::new(Mutex::new(Arc::new(present))))
    }

    /// The present one.
    pub fn get(&self) -> Arc<Present> {
        Arc::clone(&self.0.lock())
    }

    /// Another one takes its place.
    pub fn set(&self, present: Present) {
        // The one before is dropped after the lock, as that may be the end of a virtual machine.
        let _before = std::mem::replace(&mut *self.0.lock(), Arc::new(present));
    }
}
