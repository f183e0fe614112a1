//! How the parts of an operator are: for probes, metrics and people.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// The state of every part by its name, such as `stream/pods.v1 cluster-wide`, `login`, `leader-election`. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, PartHealth>>>);

/// The state of one part.
#[derive(Clone, Debug)]
pub struct PartHealth {
    /// What it means for the whole.
    pub state: HealthState,
    /// One line for people.
    pub text: String,
    /// When the state was last confirmed; for streams, the age of the last sound.
    pub seen: Instant,
}

/// What the state of a part means for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// All is well.
    Ready,
    /// Not yet, or not now; it goes on trying by itself.
    Unready,
    /// Only a restart helps.
    Dead,
}

impl Health {
    /// Notes how a part is now.
    pub fn note(&self, part: &str, state: HealthState, text: &str) {
        let noted = PartHealth { state, text: text.to_owned(), seen: Instant::now() };
        self.lock().insert(part.to_owned(), noted);
    }

    /// Confirms the present state of a part, whatever it is: for the hot path, where nothing has changed but the time.
    pub fn confirm(&self, part: &str) {
        if let Some(known) = self.lock().get_mut(part) {
            known.seen = Instant::now();
        }
    }

    /// Forgets a part that is gone.
    pub fn forget(&self, part: &str) {
        self.lock().remove(part);
    }

    /// All parts, by name.
    pub fn parts(&self) -> BTreeMap<String, PartHealth> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, PartHealth>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
