//! Tasks about objects take turns: however many have much to do at once, everything else runs every few milliseconds.
//!
//! A runtime polls all tasks that are ready before it looks for timers and input. So a hundred tasks of two milliseconds each, which yield
//! as they should, would delay everything else by 200.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{sync::Semaphore, task, time::Instant};

/// Time for which the tasks together run before everything else has its turn. Longer than what arrives while wake-ups are coalesced takes: to
/// read more before that is finished takes memory.
const ROUND: Duration = Duration::from_millis(5);

thread_local! {
    /// Time for which the tasks of this thread have run in this round.
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Admits the tasks to the next round, in their order.
    static NEXT: Arc<Semaphore> = Arc::new(Semaphore::new(1));
}

/// A task that takes turns with all others of its kind on the same thread.
pub struct InTurns<F> {
    task: F,
    waiting: Option<BoxFuture<'static, ()>>,
}

impl<F: Future + Unpin> InTurns<F> {
    /// Makes a task take turns.
    pub fn new(task: F) -> Self {
        InTurns { task, waiting: None }
    }
}

impl<F: Future + Unpin> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if self.waiting.is_none() && is_over() {
            self.waiting = Some(next_round(NEXT.with(Arc::clone)).boxed());
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.poll_unpin(cx));
            self.waiting = None;
        }
        let began = Instant::now();
        let polled = self.task.poll_unpin(cx);
        SPENT.set(SPENT.get() + began.elapsed());
        polled
    }
}

fn is_over() -> bool {
    SPENT.get() >= ROUND
}

/// Waits until there is a round with time left.
async fn next_round(next: Arc<Semaphore>) {
    // The semaphore is never closed.
    let _admitted = next.acquire().await;
    if is_over() {
        // Until the runtime has looked for timers and input, and has polled what was ready.
        task::yield_now().await;
        SPENT.set(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::{
        task::{self, JoinSet},
        time::Instant,
    };

    use super::{InTurns, ROUND};

    /// Runs tasks that compute for a whole round several times, next to another task. Returns the numbers of the tasks in the order of
    /// their rounds; `None` is the other task.
    async fn rounds(tasks: usize, each: usize) -> Vec<Option<usize>> {
        let (log, mut all) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
        for number in 0..tasks {
            let log = Arc::clone(&log);
            all.spawn(InTurns::new(Box::pin(async move {
                for _ in 0..each {
                    let began = Instant::now();
                    while began.elapsed() < ROUND {}
                    log.lock().push(Some(number));
                    task::yield_now().await;
                }
            })));
        }
        let seen = Arc::clone(&log);
        all.spawn(async move {
            while seen.lock().iter().flatten().count() < tasks * each {
                task::yield_now().await;
                seen.lock().push(None);
            }
        });
        all.join_all().await;
        std::mem::take(&mut log.lock())
    }

    #[tokio::test]
    async fn however_many_tasks_compute_others_run_between_two_of_them() {
        const TASKS: usize = 5;
        let log = rounds(TASKS, 3).await;
        // One per round of the runtime, so two may follow each other at the border of two rounds.
        assert!(log.windows(3).all(|it| it.contains(&None)), "{log:?}");
        let computed = log.iter().flatten().collect::<Vec<_>>();
        assert!(
            computed.chunks(TASKS).all(|it| it == computed.get(..TASKS).unwrap_or_default()),
            "in their order: {log:?}"
        );
    }

    #[tokio::test]
    async fn a_task_that_is_dropped_while_it_waits_for_its_turn_does_not_delay_others() {
        let mut waiting = JoinSet::new();
        for _ in 0..3 {
            waiting.spawn(InTurns::new(Box::pin(async {
                loop {
                    let began = Instant::now();
                    while began.elapsed() < ROUND {}
                    task::yield_now().await;
                }
            })));
        }
        for _ in 0..3 {
            task::yield_now().await;
        }
        waiting.shutdown().await;
        assert_eq!(rounds(1, 1).await.iter().flatten().count(), 1);
    }
}
