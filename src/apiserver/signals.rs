//! Tells watchers that there is something new, in the order in which they wait: so tests on a virtual clock have one history.

use std::pin::pin;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wakes watchers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The version of the latest change.
    pub(crate) revision: u64,
    /// Counts the times when all watches were closed.
    pub(crate) epoch: u64,
}

/// The present signal, and who waits for another one.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    present: Mutex<Signal>,
    news: Notify,
}

impl Signals {
    pub(crate) fn get(&self) -> Signal {
        *self.present.lock()
    }

    /// Changes the signal, and wakes all that wait if that makes a difference.
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

    /// Waits until the signal is as wanted.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&Signal) -> bool) {
        loop {
            let mut news = pin!(self.news.notified());
            // Registered before the look, so that no change is missed.
            news.as_mut().enable();
            if wanted(&self.get()) {
                return;
            }
            news.await;
        }
    }
}
