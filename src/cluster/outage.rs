//! Outages: times without a connection to the API server, and how waiting tasks resume after them.

use std::{
    fmt,
    pin::pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tracing::warn;

use crate::telemetry::{Health, HealthState};

/// The interval of attempts during an outage, by one of all waiting tasks.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// All waiting tasks resume within this time: not all at once, because the server has just come back.
const SPREAD: Duration = Duration::from_millis(500);

/// The interval of log lines during an outage.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Time after which the operator is not ready. A restart of the server takes less.
const UNREADY_AFTER: Duration = Duration::from_secs(5);

/// The part of the health report that exists during a long outage.
const PART: &str = "api-server";

/// The tracing target of the lines.
const TARGET: &str = "kopf.cluster";

/// The state of the connection to the server: whether there is an outage, and the tasks that wait for its end.
#[derive(Default)]
pub(super) struct Outage {
    is_on: AtomicBool,
    over: Notify,
    /// The number of waiting tasks.
    waiting: AtomicUsize,
    /// When it began, and when that was logged last.
    logged: Mutex<Option<(Instant, Instant)>>,
    /// Held by the task that tries to connect.
    probe: tokio::sync::Mutex<()>,
    jitter: Jitter,
    /// Where a long outage is reported.
    health: Option<Health>,
}

/// Random parts of pauses, so that streams and replicas are not synchronized.
#[derive(Default)]
pub(super) struct Jitter(Option<Mutex<fastrand::Rng>>);

impl Outage {
    pub(super) fn new(jitter: Jitter) -> Self {
        Outage { jitter, ..Outage::default() }
    }

    /// Reports long outages to this health.
    pub(super) fn reporting(self, health: Health) -> Self {
        Outage { health: Some(health), ..self }
    }

    /// Records that there was no connection to the server at this address, which may be unknown. Logs that at the beginning, and every 30 s.
    pub(super) fn begin(&self, server: &str, why: &dyn fmt::Display) {
        self.is_on.store(true, Ordering::Relaxed);
        let now = Instant::now();
        let mut logged = self.logged.lock();
        let Some((began, last)) = *logged else {
            *logged = Some((now, now));
            let at = if server.is_empty() { "" } else { " at " };
            warn!(target: TARGET, "The API server{at}{server} is unreachable: {why}. Requests wait and are repeated.");
            return;
        };
        let seconds = now.duration_since(began).as_secs();
        if let (Some(health), true) = (&self.health, now.duration_since(began) >= UNREADY_AFTER) {
            health.note(PART, HealthState::Unready, &format!("unreachable for {seconds} s: {why}"));
        }
        if now.duration_since(last) >= LINE_EVERY {
            *logged = Some((began, now));
            let waiting = match self.waiting.load(Ordering::Relaxed).max(1) {
                1 => "1 request is waiting".to_owned(),
                several => format!("{several} requests are waiting"),
            };
            warn!(target: TARGET, "The API server has been unreachable for {seconds} s, {waiting}: {why}");
        }
    }

    /// Records that the server has responded.
    pub(super) fn end(&self) {
        if self.is_on.load(Ordering::Relaxed) && self.is_on.swap(false, Ordering::Relaxed) {
            self.over.notify_waiters();
            if let Some(health) = &self.health {
                health.forget(PART);
            }
            if let Some((began, _)) = self.logged.lock().take() {
                let seconds = began.elapsed().as_secs();
                warn!(target: TARGET, "The API server is back after {seconds} s.");
            }
        }
    }

    /// Waits for this pause, or until the server responds again. During an outage, one of all waiting tasks tries each second.
    pub(super) async fn sleep(&self, pause: Duration) {
        let end = Instant::now() + pause;
        let _waiting = WaitingTask::among(&self.waiting);
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

/// Counts a task as waiting until it is dropped.
struct WaitingTask<'a>(&'a AtomicUsize);

impl<'a> WaitingTask<'a> {
    fn among(all: &'a AtomicUsize) -> Self {
        all.fetch_add(1, Ordering::Relaxed);
        WaitingTask(all)
    }
}

impl Drop for WaitingTask<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
