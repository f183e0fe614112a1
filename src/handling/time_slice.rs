//! Long loops give other tasks their turn, and take turns among themselves: however many there are, everything else runs between two of
//! their slices.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, task, time::Instant};

/// Time for which a loop runs before it yields.
const SLICE: Duration = Duration::from_millis(1);

/// Size of a text from which on parsing and comparing it can take longer, in bytes.
const LARGE: usize = 32 << 10;

thread_local! {
    /// Whose turn it is among the tasks of this thread whose slices are over.
    static TURN: Arc<Semaphore> = Arc::new(Semaphore::new(1));
}

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
            *self = TimeSlice::start_in_turn().await;
        }
    }

    /// Waits for the turn to work on a text of this many bytes, if it is large.
    pub async fn wait_for_turn_with(bytes: usize) {
        if bytes >= LARGE {
            TimeSlice::start_in_turn().await;
        }
    }

    /// Starts a slice after all that is ready to run and the slices of all tasks that have waited longer for their turn.
    pub async fn start_in_turn() -> Self {
        let turn = TURN.with(Arc::clone);
        // The turn ends when the slice begins: the next task waits for what has become ready meanwhile.
        let turn = turn.acquire().await;
        task::yield_now().await;
        drop(turn);
        TimeSlice::start()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::{
        task::{self, JoinSet},
        time,
    };

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
    #[tokio::test]
    async fn however_many_tasks_have_long_slices_others_run_between_two_of_them() {
        const TASKS: usize = 10;
        const SLICES: usize = 5;
        let (log, mut tasks) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
        for number in 0..TASKS {
            let log = Arc::clone(&log);
            tasks.spawn(async move {
                for _ in 0..SLICES {
                    TimeSlice::start_in_turn().await;
                    log.lock().push(Some(number));
                }
            });
        }
        let seen = Arc::clone(&log);
        tasks.spawn(async move {
            while seen.lock().iter().flatten().count() < TASKS * SLICES {
                task::yield_now().await;
                seen.lock().push(None);
            }
        });
        tasks.join_all().await;
        let log = log.lock();
        // One per round of the runtime, so two may follow each other at the border of two rounds.
        assert!(log.windows(3).all(|it| it.contains(&None)), "{log:?}");
        let slices = log.iter().flatten().collect::<Vec<_>>();
        assert!(slices.chunks(TASKS).all(|it| it == slices.get(..TASKS).unwrap_or_default()));
    }
}
