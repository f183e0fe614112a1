//! Places for busy workers: `settings.queueing.worker_limit`.
//!
//! A stream takes a place before it starts a worker, so that objects which wait for one cost no task. A worker that waits
//! for others, rather than for its own work, lends its place out meanwhile.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{Notify, oneshot};

/// The places of one stream. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Places(Option<Arc<Shared>>);

/// A place in use; dropping it frees it.
#[derive(Debug)]
pub(super) struct Place {
    /// `None`: there is no limit.
    shared: Option<Arc<Shared>>,
    /// Not while it is lent out.
    is_taken: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Workers that lent their place out and want one back; they come before new workers.
    returning: VecDeque<oneshot::Sender<Place>>,
}

impl Places {
    /// So many places; `None`: no limit.
    pub(super) fn new(limit: Option<usize>) -> Self {
        Places(limit.map(|free| {
            let state = Mutex::new(State { free, returning: VecDeque::new() });
            Arc::new(Shared { state, freed: Notify::new() })
        }))
    }

    /// Whether there is a limit.
    pub(super) fn are_limited(&self) -> bool {
        self.0.is_some()
    }

    /// A place, if one is free.
    pub(super) fn try_take(&self) -> Option<Place> {
        if let Some(shared) = &self.0 {
            let mut state = shared.lock();
            state.free = state.free.checked_sub(1)?;
        }
        Some(Place { shared: self.0.clone(), is_taken: true.into() })
    }

    /// Waits until a place may have become free since the last look.
    pub(super) async fn freed(&self) {
        match &self.0 {
            Some(shared) => shared.freed.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl Place {
    /// Waits for something that needs others to go on: they may have the place meanwhile.
    pub(super) async fn without<T>(&self, wait: impl Future<Output = T>) -> T {
        let Some(shared) = &self.shared else { return wait.await };
        self.give();
        let result = wait.await;
        let places = Places(Some(Arc::clone(shared)));
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
        if let Some(shared) = &self.shared
            && self.is_taken.swap(false, Ordering::AcqRel)
        {
            shared.free();
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
        let place = Place { shared: Some(Arc::clone(self)), is_taken: true.into() };
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
        self.lock().free += 1;
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
