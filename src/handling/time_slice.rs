//! Long loops give other tasks their turn.

use std::time::Duration;

use tokio::{task, time::Instant};

/// Time for which a loop runs before it yields.
const SLICE: Duration = Duration::from_millis(1);

/// A time slice of a task that handles one after the other of many things.
#[derive(Debug)]
pub struct TimeSlice(Instant);

impl TimeSlice {
    /// Starts a slice.
    pub fn start() -> Self {
        TimeSlice(Instant::now())
    }

    /// Returns whether the task should yield.
    pub fn is_over(&self) -> bool {
        self.0.elapsed() >= SLICE
    }

    /// Lets other tasks run if the slice is over, and starts another one.
    pub async fn yield_if_over(&mut self) {
        if self.is_over() {
            task::yield_now().await;
            self.0 = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{task::JoinSet, time};

    use super::{SLICE, TimeSlice};

    #[tokio::test(start_paused = true)]
    async fn other_tasks_run_when_a_slice_is_over() {
        let mut slice = TimeSlice::start();
        let mut early = JoinSet::new();
        early.spawn(std::future::ready(()));
        slice.yield_if_over().await;
        assert!(early.try_join_next().is_none(), "the slice has just begun");
        time::advance(SLICE).await;
        let mut late = JoinSet::new();
        late.spawn(std::future::ready(()));
        assert!(slice.is_over() && late.try_join_next().is_none());
        slice.yield_if_over().await;
        assert!(late.try_join_next().is_some() && !slice.is_over());
    }
}
