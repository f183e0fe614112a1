//! Places for busy workers: `settings.queueing.worker_limit`.
//!
//! A stream takes a place before it starts a worker, so that objects which wait for one cost no task. A worker that waits
//! for others, rather than for its own work, lends its place out meanwhile.
//!
//! Without a limit there are places too, as many as are good for the memory when many objects come at once: all that they need
//! they need by turns, so that more of them at once get nothing done sooner. More places are made when none becomes free for a
//! moment: workers that have to wait for long never hold others up.

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

/// Places of streams without a limit, while workers come and go: some times as many as there are requests on their way at
/// once. Each busy worker takes some ten kilobytes.
const PLACES: usize = 128;
/// How long no place may become free until there are more, where there is no limit. A machine that is busy with other things
/// stops us for some ten milliseconds now and then, which is no reason.
const BREATH: Duration = Duration::from_millis(100);
/// The same while the stream has events to read: what workers wait for may be among them.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many more; each time twice as many, until one becomes free.
const MORE: usize = 64;
/// But no more than this at a time.
const MORE_MAX: usize = 4096;

/// The places of one stream. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Shared>);

/// A place in use; dropping it frees it.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    /// Not while it is lent out.
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
    /// Places beyond the usual number: they go when more are free than a rush needs.
    extra: usize,
    /// When a place was taken or became free last, or an event was read.
    moved: Instant,
    /// When a place became free last, or more were made.
    freed: Instant,
    /// How many are made next.
    more: usize,
    /// Workers that lent their place out and want one back; they come before new workers.
    returning: VecDeque<oneshot::Sender<Place>>,
}

impl Places {
    /// So many places; `None`: no limit.
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

    /// Whether there is a limit.
    pub(super) fn are_limited(&self) -> bool {
        self.0.is_limited
    }

    /// A place, if one is free.
    pub(super) fn try_take(&self) -> Option<Place> {
        let mut state = self.0.lock();
        state.free = state.free.checked_sub(1)?;
        state.moved = Instant::now();
        Some(Place { shared: Arc::clone(&self.0), is_taken: true.into() })
    }

    /// The stream has read an event: there may be more, and what workers wait for among them.
    pub(super) fn postpone(&self) {
        self.0.lock().moved = Instant::now();
    }

    fn make_more(&self) {
        let mut state = self.0.lock();
        let count = state.more;
        state.more = count.saturating_mul(2).min(MORE_MAX);
        state.add(count);
    }

    /// Waits until a place may have become free since the last look.
    pub(super) async fn freed(&self) {
        let freed = self.0.freed.notified();
        if self.0.is_limited {
            return freed.await;
        }
        let late = self.0.lock().late();
        tokio::select! {
            biased; // no more than are needed
            () = freed => {}
            () = time::sleep_until(late) => self.make_more(),
        }
    }
}

impl Place {
    /// Waits for something that needs others to go on: they may have the place meanwhile.
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
            // The sender is kept until it is used: there is no error to see.
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
                // It does not wait any more.
                Err(unused) => place = Some(unused),
            }
        }
        if let Some(place) = place {
            place.is_taken.store(false, Ordering::Release);
        }
        let mut state = self.lock();
        let now = Instant::now();
        (state.moved, state.freed, state.more) = (now, now, MORE);
        // Some stay free while others are taken for long: or each of those who come next would wait for more again.
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
        // Every change under this lock is one step; a panic cannot leave it half-done.
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

    /// When more are made if none becomes free.
    fn late(&self) -> Instant {
        // A stream that always has something to read holds up nobody for ever.
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
