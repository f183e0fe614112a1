//! The place of a worker among those that may be busy at the same time: `settings.queueing.worker_limit`.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A place that a worker takes and gives back.
#[derive(Debug)]
pub(super) struct Place {
    /// `None`: there is no limit.
    places: Option<Arc<Semaphore>>,
    taken: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Place {
    /// Not taken yet.
    pub(super) fn of(places: Option<Arc<Semaphore>>) -> Self {
        Place { places, taken: Mutex::default() }
    }

    /// Waits for it.
    pub(super) async fn take(&self) {
        let Some(places) = &self.places else { return };
        // The semaphore is never closed: there is always a permit in the end.
        let permit = Arc::clone(places).acquire_owned().await.ok();
        self.put(permit);
    }

    /// Gives it back for as long as a wait for others takes: they may need it to go on.
    pub(super) async fn without<T>(&self, wait: impl Future<Output = T>) -> T {
        self.put(None);
        let result = wait.await;
        self.take().await;
        result
    }

    fn put(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}
