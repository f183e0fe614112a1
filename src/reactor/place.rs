//! Permits for busy workers: `settings.queueing.worker_limit`.
//!
//! A stream takes a permit before it starts a worker, so objects that wait for a permit cost no task. A worker that waits for
//! something other than its own work releases its permit meanwhile.
//!
//! Without a limit there are permits too, to limit memory when many objects come at once: workers need the same resources one after
//! another, so more of them at once finish nothing sooner. If no permit is released for a moment, more are created: workers that
//! wait for long never hold up others.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
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
const PLACES: usize = 128;
/// Without a limit: the time without a released permit after which more are created. A machine that is busy with other processes
/// stops this one for some ten milliseconds now and then, which must not trigger it.
const BREATH: Duration = Duration::from_millis(100);
/// The same while the stream has events to read: workers may be waiting for one of these.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many permits to create first; doubled each time, until one is released.
const MORE: usize = 64;
/// Maximum number of permits to create at once.
const MORE_MAX: usize = 4096;

/// The worker permits of one stream. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Shared>);

/// A permit in use; dropping it releases it.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    /// False while the permit is released temporarily.
    is_taken: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    is_limited: bool,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Permits beyond the usual number: removed when more are free than a burst needs.
    extra: usize,
    /// When a permit was last taken or released, or an event was read.
    moved: Instant,
    /// When a permit was last released, or more were created.
    freed: Instant,
    /// How many permits to create next.
    more: usize,
    /// Workers that released their permit and want one back; they come before new workers.
    returning: VecDeque<oneshot::Sender<Place>>,
}

impl Places {
    /// Creates this many permits; `None` means no limit.
    pub(super) fn new(limit: Option<usize>) -> Self {
        let now = Instant::now();
        let state = State {
            free: limit.unwrap_or(PLACES),
            extra: 0,
            moved: now,
            freed: now,
            more: MORE,
            returning: VecDeque::new(),
        };
        let (is_limited, freed) = (limit.is_some(), Notify::new());
        Places(Arc::new(Shared { is_limited, state: Mutex::new(state), freed }))
    }

    /// Returns whether there is a limit.
    pub(super) fn are_limited(&self) -> bool {
        self.0.is_limited
    }

    /// Takes a permit, if one is free.
    pub(super) fn try_take(&self) -> Option<Place> {
        let mut state = self.0.lock();
        state.free = state.free.checked_sub(1)?;
        state.moved = Instant::now();
        Some(Place { shared: Arc::clone(&self.0), is_taken: true.into() })
    }

    /// Notes that the stream has read an event: more may follow, and workers may be waiting for one of them.
    pub(super) fn postpone(&self) {
        self.0.lock().moved = Instant::now();
    }

    fn make_more(&self) {
        let mut state = self.0.lock();
        let count = state.more;
        state.more = count.saturating_mul(2).min(MORE_MAX);
        state.add(count);
    }

    /// Waits until a permit may have been released since the last check.
    pub(super) async fn freed(&self) {
        let freed = self.0.freed.notified();
        if self.0.is_limited {
            return freed.await;
        }
        let late = self.0.lock().late();
        tokio::select! {
            biased; // a released permit first, to create no more than needed
            () = freed => {}
            () = time::sleep_until(late) => self.make_more(),
        }
    }
}

impl Place {
    /// Releases the permit during `wait`, because others must continue meanwhile, and takes one again afterwards.
    pub(super) async fn without<T>(&self, wait: impl Future<Output = T>) -> T {
        let shared = &self.shared;
        self.give();
        let result = wait.await;
        let places = Places(Arc::clone(shared));
        if !shared.is_limited && shared.lock().free == 0 {
            shared.lock().add(1);
        }
        let mut place = places.try_take();
        if place.is_none() {
            let (sender, receiver) = oneshot::channel();
            shared.lock().returning.push_back(sender);
            // The sender is kept until it is used: there is no error to handle.
            place = receiver.await.ok();
        }
        if let Some(place) = place {
            let is_taken = place.is_taken.swap(false, Ordering::AcqRel);
            self.is_taken.store(is_taken, Ordering::Release);
        }
        result
    }

    fn give(&self) {
        if self.is_taken.swap(false, Ordering::AcqRel) {
            self.shared.free();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give();
    }
}

impl Shared {
    fn free(self: &Arc<Self>) {
        let place = Place { shared: Arc::clone(self), is_taken: true.into() };
        let mut place = Some(place);
        while let Some(one) = self.next_returning()
            && let Some(offered) = place.take()
        {
            match one.send(offered) {
                Ok(()) => return,
                // The worker does not wait any more.
                Err(unused) => place = Some(unused),
            }
        }
        if let Some(place) = place {
            place.is_taken.store(false, Ordering::Release);
        }
        let mut state = self.lock();
        let now = Instant::now();
        (state.moved, state.freed, state.more) = (now, now, MORE);
        // Some extra permits stay free while others are held for long: otherwise each next worker would wait for more again.
        if state.extra > 0 && state.free >= MORE {
            state.extra -= 1;
        } else {
            state.free += 1;
        }
        drop(state);
        self.freed.notify_one();
    }

    fn next_returning(&self) -> Option<oneshot::Sender<Place>> {
        self.lock().returning.pop_front()
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
        (self.moved, self.freed) = (now, now);
    }

    /// Returns when to create more permits if none is released.
    fn late(&self) -> Instant {
        // A stream that always has events to read must not delay this forever.
        (self.moved + BREATH).min(self.freed + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::{self, Instant};

    use super::Places;

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_there_are_more_when_none_becomes_free_for_a_moment() {
        let places = Places::new(None);
        let taken: Vec<_> = std::iter::from_fn(|| places.try_take()).collect();
        assert_eq!(taken.len(), super::PLACES);
        places.freed().await;
        let more: Vec<_> = std::iter::from_fn(|| places.try_take()).collect();
        assert_eq!(more.len(), super::MORE);
        drop((taken, more));
        let again: Vec<_> = std::iter::from_fn(|| places.try_take()).collect();
        assert_eq!(again.len(), super::PLACES, "the further ones are gone");
    }

    #[tokio::test(start_paused = true)]
    async fn others_wait_once_while_many_places_are_taken_for_long() {
        let (places, start) = (Places::new(None), Instant::now());
        let _taken = take_all(&places);
        places.freed().await;
        let waited = start.elapsed();
        for number in 0..1000 {
            assert!(places.try_take().is_some(), "number {number} has to wait");
        }
        assert_eq!(start.elapsed(), waited);
    }

    fn take_all(places: &Places) -> Vec<super::Place> {
        std::iter::from_fn(|| places.try_take()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_long_holds_thousands_up_for_little() {
        let (places, start) = (Places::new(None), Instant::now());
        let mut taken = Vec::new();
        while taken.len() < 10_000 {
            taken.append(&mut take_all(&places));
            places.freed().await;
        }
        assert!(start.elapsed() < time::Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn while_there_is_something_to_read_no_more_are_made_for_a_while() {
        let (places, start) = (Places::new(None), Instant::now());
        let _taken = take_all(&places);
        while time::timeout(super::BREATH / 2, places.freed()).await.is_err() {
            places.postpone();
        }
        assert_eq!(start.elapsed(), super::PATIENCE);
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let places = Places::new(Some(1));
        let first = places.try_take().unwrap();
        assert!(places.try_take().is_none());
        drop(first);
        assert!(places.try_take().is_some());
        assert!(Places::new(None).try_take().is_some());
    }

    #[tokio::test]
    async fn who_lends_a_place_out_gets_one_back_before_newcomers() {
        let places = Places::new(Some(1));
        let lender = places.try_take().unwrap();
        let (done, wait) = tokio::sync::oneshot::channel::<()>();
        let lend = lender.without(wait);
        tokio::pin!(lend);
        assert!(lend.as_mut().now_or_never().is_none());
        let borrower = places.try_take().expect("it is lent out");
        done.send(()).unwrap();
        assert!(lend.as_mut().now_or_never().is_none(), "somebody else has it");
        drop(borrower);
        assert!(places.try_take().is_none(), "it belongs to the lender again");
        lend.await.unwrap();
    }
}
