//! Places for busy workers: `settings.queueing.worker_limit`.
//!
//! A stream takes a place before it starts a worker, so that objects which wait for one cost no task. A worker that waits
//! for others, rather than for its own work, lends its place out meanwhile.
//!
//! Without a limit there are places too, as many as are good for the memory when many objects come at once. More are made
//! when none becomes free for a moment: workers that have to wait for long never hold others up.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};

/// Places of streams without a limit, while workers come and go. Each busy worker takes some ten kilobytes.
const PLACES: usize = 256;
/// How long no place may become free until there are more, where there is no limit.
const BREATH: Duration = Duration::from_millis(20);
/// How many more.
const MORE: usize = 64;

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
    /// Places beyond the usual number: so many go when they become free.
    extra: usize,
    /// When a place was taken or became free last.
    moved: Instant,
    /// Workers that lent their place out and want one back; they come before new workers.
    returning: VecDeque<oneshot::Sender<Place>>,
}

impl Places {
    /// So many places; `None`: no limit.
    pub(super) fn new(limit: Option<usize>) -> Self {
        let state = State {
            free: limit.unwrap_or(PLACES),
            extra: 0,
            moved: Instant::now(),
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

    fn make_more(&self, count: usize) {
        let mut state = self.0.lock();
        state.free += count;
        state.extra += count;
        state.moved = Instant::now();
    }

    /// Waits until a place may have become free since the last look.
    pub(super) async fn freed(&self) {
        let freed = self.0.freed.notified();
        if self.0.is_limited {
            return freed.await;
        }
        let late = self.0.lock().moved + BREATH;
        tokio::select! {
            biased; // no order is needed: both make room
            () = freed => {}
            () = time::sleep_until(late) => self.make_more(MORE),
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
            places.make_more(1);
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
        state.moved = Instant::now();
        if state.extra > 0 {
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

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
