//! The option `exclusive` of timers: their calls, and the handling of a change, exclude each other.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The lock of one object: each call of an exclusive timer reads it, the handling of a change writes it.
#[derive(Clone, Debug, Default)]
pub struct ChangeLock(Arc<RwLock<()>>);

/// The right of an exclusive timer to be called, until it is dropped.
pub(super) type TimerGuard = OwnedRwLockReadGuard<()>;

/// The right to handle a change, until it is dropped.
pub(super) type ChangeGuard = OwnedRwLockWriteGuard<()>;

impl ChangeLock {
    /// Waits until no change is being handled. Requests are served in order.
    pub(super) async fn timer(&self) -> TimerGuard {
        Arc::clone(&self.0).read_owned().await
    }

    /// Waits until no exclusive timer is being called.
    pub async fn change(&self) -> ChangeGuard {
        Arc::clone(&self.0).write_owned().await
    }

    /// Returns the right to handle a change, if no exclusive timer is being called.
    pub fn try_change(&self) -> Option<ChangeGuard> {
        Arc::clone(&self.0).try_write_owned().ok()
    }
}

/// The lock of an object with exclusive timers, with the right of the change that is being handled.
#[derive(Debug)]
pub(super) struct Exclusion {
    pub(super) lock: ChangeLock,
    pub(super) change: Option<ChangeGuard>,
}

impl Exclusion {
    /// Creates the lock for a change: whether there is one is decided after the timers have started.
    pub(super) fn new() -> Self {
        let lock = ChangeLock::default();
        let change = lock.try_change();
        Exclusion { lock, change }
    }
}
