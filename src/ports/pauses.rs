//! What holds the operator back: other operators, or a mandatory peering that is not there.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

/// A set of named blockers; the operator is paused while there is any. Clones share it.
#[derive(Clone, Debug)]
pub struct Pauses(Arc<watch::Sender<BTreeSet<String>>>);

impl Default for Pauses {
    fn default() -> Self {
        Pauses(Arc::new(watch::Sender::new(BTreeSet::new())))
    }
}

impl Pauses {
    /// Sets or lifts one blocker, such as `default@ns1`.
    pub fn set(&self, blocker: &str, is_on: bool) {
        self.0.send_if_modified(|all| {
            if is_on { all.insert(blocker.to_owned()) } else { all.remove(blocker) }
        });
    }

    /// Whether there is any blocker.
    pub fn is_paused(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    /// Whether this blocker is among them.
    pub fn has(&self, blocker: &str) -> bool {
        self.0.borrow().contains(blocker)
    }

    /// The blockers, sorted.
    pub fn blockers(&self) -> Vec<String> {
        self.0.borrow().iter().cloned().collect()
    }

    /// Waits until the operator is paused, or until it is not.
    ///
    /// A pause that has ended when the waiting task runs is not seen.
    pub async fn until(&self, is_paused: bool) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as `self`: there is no error to see.
        drop(changes.wait_for(|all| all.is_empty() != is_paused).await);
    }
}
