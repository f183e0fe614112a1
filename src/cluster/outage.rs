//! Outages: times without a connection to the API server, and how waiting tasks resume after them.

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

/// The interval of attempts during an outage, by one of all waiting tasks.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// All waiting tasks resume within this time: not all at once, because the server has just come back.
const SPREAD: Duration = Duration::from_millis(500);

/// Whether the server is unreachable, and the tasks that wait for it.
#[derive(Default)]
pub(super) struct Outage {
    is_on: AtomicBool,
    over: Notify,
    /// Held by the task that tries.
    probe: tokio::sync::Mutex<()>,
    jitter: Jitter,
}

/// Random parts of pauses, so that streams and replicas are not synchronized.
#[derive(Default)]
pub(super) struct Jitter(Option<Mutex<fastrand::Rng>>);

impl Outage {
    pub(super) fn new(jitter: Jitter) -> Self {
        Outage { jitter, ..Outage::default() }
    }

    /// Records that there was no connection.
    pub(super) fn begin(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Records that the server has responded.
    pub(super) fn end(&self) {
        if self.is_on.load(Ordering::Relaxed) && self.is_on.swap(false, Ordering::Relaxed) {
            self.over.notify_waiters();
        }
    }

    /// Waits for this pause, or until the server responds again. During an outage, one of all waiting tasks tries each second.
    pub(super) async fn sleep(&self, pause: Duration) {
        let end = Instant::now() + pause;
        let mut over = pin!(self.over.notified());
        over.as_mut().enable();
        tokio::select! {
            biased; // the order makes no difference
            () = sleep_until(end) => return,
            () = self.probe() => return,
            () = over => {}
        }
        let spread = self.jitter.below(SPREAD);
        sleep_until(end.min(Instant::now() + spread)).await;
    }

    async fn probe(&self) {
        if !self.is_on.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let _turn = self.probe.lock().await;
        sleep(PROBE_EVERY).await;
    }

    pub(super) fn jitter(&self) -> &Jitter {
        &self.jitter
    }
}

impl Jitter {
    /// Returns a random source.
    pub(super) fn random() -> Self {
        Jitter(Some(Mutex::new(fastrand::Rng::new())))
    }

    /// Returns a source with the same sequence each time.
    pub(super) fn seeded(seed: u64) -> Self {
        Jitter(Some(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// Returns the pause, longer by up to a half.
    pub(super) fn stretch(&self, pause: Duration) -> Duration {
        pause.saturating_add(self.below(pause / 2))
    }

    fn below(&self, limit: Duration) -> Duration {
        let Some(random) = &self.0 else { return Duration::ZERO };
        limit.mul_f64(random.lock().f64())
    }
}
