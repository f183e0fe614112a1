//! Wakes watchers after changes, in the order in which they wait, so that tests on virtual time are deterministic.

use std::pin::pin;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The state that watchers wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The version of the latest change.
    pub(crate) revision: u64,
    /// Incremented whenever all watches are closed.
    pub(crate) epoch: u64,
}

/// The current signal, and the tasks that wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    present: Mutex<Signal>,
    news: Notify,
}

impl Signals {
    pub(crate) fn get(&self) -> Signal {
        *self.present.lock()
    }

    /// Changes the signal, and wakes all waiting tasks if it differs.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Signal)) {
        let mut present = self.present.lock();
        let before = *present;
        change(&mut present);
        let is_news = *present != before;
        drop(present);
        if is_news {
            self.news.notify_waiters();
        }
    }

    /// Waits until the signal meets a condition.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&Signal) -> bool) {
        loop {
            let mut news = pin!(self.news.notified());
            // Registered before the check, so that no change is missed.
            news.as_mut().enable();
            if wanted(&self.get()) {
                return;
            }
            news.await;
        }
    }
}
