//! The reasons why the operator pauses: other operators, or a mandatory peering that does not exist.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

/// A set of named blockers; the operator is paused while the set is not empty. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pauses(Arc<watch::Sender<Blockers>>);

#[derive(Debug, Default)]
struct Blockers {
    names: BTreeSet<String>,
    /// How often the operator was paused so far.
    pauses: u64,
}

impl Pauses {
    /// Adds or removes one blocker, such as `default@ns1`.
    pub fn set(&self, blocker: &str, is_on: bool) {
        self.0.send_if_modified(|all| {
            if is_on {
                all.pauses += u64::from(all.names.is_empty());
                all.names.insert(blocker.to_owned())
            } else {
                all.names.remove(blocker)
            }
        });
    }

    /// Returns whether there is any blocker.
    pub fn is_paused(&self) -> bool {
        !self.0.borrow().names.is_empty()
    }

    /// Returns whether there is a blocker of this name.
    pub fn has(&self, blocker: &str) -> bool {
        self.0.borrow().names.contains(blocker)
    }

    /// Returns the blockers, sorted.
    pub fn blockers(&self) -> Vec<String> {
        self.0.borrow().names.iter().cloned().collect()
    }

    /// Returns how often the operator was paused so far, for [`Pauses::next`].
    pub fn count(&self) -> u64 {
        self.0.borrow().pauses
    }

    /// Waits until the operator was paused more often than `count` times, however briefly.
    pub async fn next(&self, count: u64) {
        self.wait(|all| all.pauses > count || !all.names.is_empty()).await;
    }

    /// Waits until the operator is paused, or until it is not. May miss a brief change; see [`Pauses::next`].
    pub async fn until(&self, is_paused: bool) {
        self.wait(|all| all.names.is_empty() != is_paused).await;
    }

    async fn wait(&self, condition: impl FnMut(&Blockers) -> bool) {
        // The sender is not dropped before `self`, so there is no error.
        drop(self.0.subscribe().wait_for(condition).await);
    }
}
