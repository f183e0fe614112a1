//! Work that takes long on purpose, such as generating keys and hashing passwords: it runs on a thread of its own, one piece of work
//! at a time for each script.
//!
//! It cannot be interrupted, so its cost is bounded before it begins. If the call ends meanwhile, the work goes on to its end, and
//! the next one of the script waits for that.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

/// The heavy work of one script.
#[derive(Debug)]
pub(crate) struct Heavy {
    turn: Arc<Semaphore>,
    /// Microseconds that calls have waited for their own work, and that are not subtracted from their waiting yet.
    worked: AtomicU64,
}

impl Default for Heavy {
    fn default() -> Self {
        Heavy { turn: Arc::new(Semaphore::new(1)), worked: AtomicU64::new(0) }
    }
}

impl Heavy {
    /// Does work when it is its turn. The error is that of the thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let turn = turn.map_err(|closed| closed.to_string())?;
        let began = Instant::now();
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        let done = done.await.map_err(|it| it.to_string());
        let worked = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.worked.fetch_add(worked, Ordering::Relaxed);
        done
    }

    /// Returns how much of a wait was work: this restores no computing time.
    pub(crate) fn take_worked(&self) -> Duration {
        Duration::from_micros(self.worked.swap(0, Ordering::Relaxed))
    }
}
