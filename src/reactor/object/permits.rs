//! Permits for busy workers: `settings.queueing.worker_limit`.
//!
//! A stream takes a permit before it starts a worker, so objects that wait for a permit cost no task. A worker that waits for
//! something other than its own work releases its permit meanwhile.
//!
//! Without a limit there are permits, too, to limit memory when many objects come at once: workers need the same resources one after
//! another, so more of them at once finish nothing sooner. If no permit is released for a moment, more are created, so workers that wait
//! for long never block others.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};

/// Permits of a stream without a limit, in normal operation: several times the number of concurrent requests. Each busy worker
/// takes some ten kilobytes.
const PERMITS: usize = 128;
/// Without a limit: the time without a released permit after which more are created. A busy machine may suspend this process for some ten
/// milliseconds, which must not create permits.
const GROWTH_DELAY: Duration = Duration::from_millis(100);
/// The same while the stream has events to read: workers may be waiting for one of these.
const GROWTH_DELAY_MAX: Duration = Duration::from_secs(1);
/// Number of permits to create first; doubled each time, until one is released.
const GROWTH_MIN: usize = 64;
/// Maximum number of permits to create at once.
const GROWTH_MAX: usize = 4096;

/// The worker permits of one stream. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct WorkerPermits(Arc<Shared>);

/// A permit in use; dropping it releases it.
#[derive(Debug)]
pub(in crate::reactor) struct WorkerPermit {
    shared: Arc<Shared>,
    /// False while the permit is released temporarily.
    is_held: AtomicBool,
    /// The total time of its releases so far, in microseconds.
    released_for: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    is_limited: bool,
    state: Mutex<State>,
    released: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Permits beyond the usual number: removed when more are free than a burst needs.
    extra: usize,
    /// When a permit was last taken or released, or an event was read.
    active_at: Instant,
    /// When a permit was last released, or more were created.
    released: Instant,
    /// Number of permits to create next.
    growth: usize,
    /// Workers that released their permit and need one again; they come before new workers.
    reclaiming: VecDeque<oneshot::Sender<WorkerPermit>>,
}

impl WorkerPermits {
    /// Creates this many permits; `None` means no limit.
    pub(in crate::reactor) fn new(limit: Option<usize>) -> Self {
        let now = Instant::now();
        let state = State {
            free: limit.unwrap_or(PERMITS),
            extra: 0,
            active_at: now,
            released: now,
            growth: GROWTH_MIN,
            reclaiming: VecDeque::new(),
        };
        let (is_limited, released) = (limit.is_some(), Notify::new());
        WorkerPermits(Arc::new(Shared { is_limited, state: Mutex::new(state), released }))
    }

    /// Returns whether there is a limit.
    pub(in crate::reactor) fn are_limited(&self) -> bool {
        self.0.is_limited
    }

    /// Takes a permit, if one is free.
    pub(in crate::reactor) fn try_acquire(&self) -> Option<WorkerPermit> {
        let mut state = self.0.lock();
        state.free = state.free.checked_sub(1)?;
        state.active_at = Instant::now();
        let (is_held, released_for) = (true.into(), 0.into());
        Some(WorkerPermit { shared: Arc::clone(&self.0), is_held, released_for })
    }

    /// Notes that the stream has read an event: more may follow, and workers may be waiting for one of them.
    pub(in crate::reactor) fn postpone(&self) {
        self.0.lock().active_at = Instant::now();
    }

    fn grow(&self) {
        let mut state = self.0.lock();
        let count = state.growth;
        state.growth = count.saturating_mul(2).min(GROWTH_MAX);
        state.add(count);
    }

    /// Waits until a permit may have been released since the last check.
    pub(in crate::reactor) async fn released(&self) {
        let released = self.0.released.notified();
        if self.0.is_limited {
            return released.await;
        }
        let growth = self.0.lock().grow_at();
        tokio::select! {
            biased; // a released permit first, to create no more than needed
            () = released => {}
            () = time::sleep_until(growth) => self.grow(),
        }
    }
}

impl WorkerPermit {
    /// Releases the permit during `wait`, so that other workers can run meanwhile, and takes one again afterwards.
    pub(in crate::reactor) async fn release_while<T>(&self, wait: impl Future<Output = T>) -> T {
        let shared = &self.shared;
        let begun = Instant::now();
        self.release();
        let result = wait.await;
        let permits = WorkerPermits(Arc::clone(shared));
        if !shared.is_limited && shared.lock().free == 0 {
            shared.lock().add(1);
        }
        let mut permit = permits.try_acquire();
        if permit.is_none() {
            let (sender, receiver) = oneshot::channel();
            shared.lock().reclaiming.push_back(sender);
            // The sender is kept until it is used: there is no error to handle.
            permit = receiver.await.ok();
        }
        if let Some(permit) = permit {
            let is_held = permit.is_held.swap(false, Ordering::AcqRel);
            self.is_held.store(is_held, Ordering::Release);
        }
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.released_for.fetch_add(micros, Ordering::Relaxed);
        result
    }

    /// Returns for how long the permit has been released so far.
    pub(in crate::reactor) fn released_for(&self) -> Duration {
        Duration::from_micros(self.released_for.load(Ordering::Relaxed))
    }

    fn release(&self) {
        if self.is_held.swap(false, Ordering::AcqRel) {
            self.shared.release();
        }
    }
}

impl Drop for WorkerPermit {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    fn release(self: &Arc<Self>) {
        let permit =
            WorkerPermit { shared: Arc::clone(self), is_held: true.into(), released_for: 0.into() };
        let mut permit = Some(permit);
        while let Some(one) = self.next_reclaiming()
            && let Some(offered) = permit.take()
        {
            match one.send(offered) {
                Ok(()) => return,
                // The worker does not wait any more.
                Err(unused) => permit = Some(unused),
            }
        }
        if let Some(permit) = permit {
            permit.is_held.store(false, Ordering::Release);
        }
        let mut state = self.lock();
        let now = Instant::now();
        (state.active_at, state.released, state.growth) = (now, now, GROWTH_MIN);
        // Some extra permits stay free while others are in use for long: otherwise each next worker would wait for more again.
        if state.extra > 0 && state.free >= GROWTH_MIN {
            state.extra -= 1;
        } else {
            state.free += 1;
        }
        drop(state);
        self.released.notify_one();
    }

    fn next_reclaiming(&self) -> Option<oneshot::Sender<WorkerPermit>> {
        self.lock().reclaiming.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change under this lock is one step; a panic cannot leave it incomplete.
        self.state.lock()
    }
}

impl State {
    fn add(&mut self, count: usize) {
        self.free += count;
        self.extra += count;
        let now = Instant::now();
        (self.active_at, self.released) = (now, now);
    }

    /// Returns when to create more permits if none is released.
    fn grow_at(&self) -> Instant {
        // A stream that always has events to read must not delay this forever.
        (self.active_at + GROWTH_DELAY).min(self.released + GROWTH_DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::{self, Instant};

    use super::WorkerPermits;

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_permits_grow_if_none_is_released_for_a_moment() {
        let permits = WorkerPermits::new(None);
        let taken: Vec<_> = std::iter::from_fn(|| permits.try_acquire()).collect();
        assert_eq!(taken.len(), super::PERMITS);
        permits.released().await;
        let more: Vec<_> = std::iter::from_fn(|| permits.try_acquire()).collect();
        assert_eq!(more.len(), super::GROWTH_MIN);
        drop((taken, more));
        let again: Vec<_> = std::iter::from_fn(|| permits.try_acquire()).collect();
        assert_eq!(again.len(), super::PERMITS, "the extra permits are removed");
    }

    #[tokio::test(start_paused = true)]
    async fn others_wait_once_while_many_permits_are_held_for_long() {
        let (permits, start) = (WorkerPermits::new(None), Instant::now());
        let _taken = take_all(&permits);
        permits.released().await;
        let waited = start.elapsed();
        for number in 0..1000 {
            assert!(permits.try_acquire().is_some(), "number {number} must wait");
        }
        assert_eq!(start.elapsed(), waited);
    }

    fn take_all(permits: &WorkerPermits) -> Vec<super::WorkerPermit> {
        std::iter::from_fn(|| permits.try_acquire()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn long_waits_hold_thousands_of_workers_up_only_briefly() {
        let (permits, start) = (WorkerPermits::new(None), Instant::now());
        let mut taken = Vec::new();
        while taken.len() < 10_000 {
            taken.append(&mut take_all(&permits));
            permits.released().await;
        }
        assert!(start.elapsed() < time::Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn events_to_read_delay_the_growth() {
        let (permits, start) = (WorkerPermits::new(None), Instant::now());
        let _taken = take_all(&permits);
        while time::timeout(super::GROWTH_DELAY / 2, permits.released()).await.is_err() {
            permits.postpone();
        }
        assert_eq!(start.elapsed(), super::GROWTH_DELAY_MAX);
    }

    #[test]
    fn a_dropped_permit_is_free_again() {
        let permits = WorkerPermits::new(Some(1));
        let first = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none());
        drop(first);
        assert!(permits.try_acquire().is_some());
        assert!(WorkerPermits::new(None).try_acquire().is_some());
    }

    #[tokio::test]
    async fn a_worker_that_released_its_permit_gets_one_before_new_workers() {
        let permits = WorkerPermits::new(Some(1));
        let waiting = permits.try_acquire().unwrap();
        let (done, wait) = tokio::sync::oneshot::channel::<()>();
        let wait = waiting.release_while(wait);
        tokio::pin!(wait);
        assert!(wait.as_mut().now_or_never().is_none());
        let other = permits.try_acquire().expect("the permit is released");
        done.send(()).unwrap();
        assert!(wait.as_mut().now_or_never().is_none(), "another worker holds it");
        drop(other);
        assert!(permits.try_acquire().is_none(), "it is reserved for the waiting worker");
        wait.await.unwrap();
    }
}
