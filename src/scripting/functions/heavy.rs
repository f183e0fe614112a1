//! Expensive work, such as generating keys and hashing passwords: it runs on a separate thread, one job at a time for each script.
//!
//! It cannot be interrupted, so its cost is limited before it begins. If the call ends meanwhile, the job runs to its end, and the
//! next one of the script waits for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

/// The expensive work of one script.
#[derive(Debug)]
pub(crate) struct Heavy {
    turn: Arc<Semaphore>,
    /// Microseconds that calls have waited for their own jobs and that are not subtracted from their waiting time yet.
    worked: AtomicU64,
}

impl Default for Heavy {
    fn default() -> Self {
        Heavy { turn: Arc::new(Semaphore::new(1)), worked: AtomicU64::new(0) }
    }
}

impl Heavy {
    /// Runs a job after the earlier ones of the script. Fails if the job panics.
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

    /// Returns how much of a wait was work, which does not restore CPU budget.
    pub(crate) fn take_worked(&self) -> Duration {
        Duration::from_micros(self.worked.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        time::Duration,
    };

    use super::Heavy;

    /// Returns a job that reports when it begins, and ends when it is signaled.
    fn work() -> (impl FnOnce() + Send + 'static, Receiver<()>, Sender<()>) {
        let ((begins, begun), (end, ends)) = (channel(), channel());
        let work = move || {
            begins.send(()).expect("a listener");
            ends.recv().expect("an end");
        };
        (work, begun, end)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_script_runs_one_job_at_a_time_and_other_scripts_do_not_wait() {
        /// How long to wait for what must not happen.
        const SHORT: Duration = Duration::from_millis(100);
        let (own, other) = (Heavy::default(), Heavy::default());
        let (first, first_begun, end_first) = work();
        let (second, second_begun, end_second) = work();
        let (third, third_begun, end_third) = work();
        let watch = tokio::task::spawn_blocking(move || {
            first_begun.recv().expect("the first begins");
            third_begun.recv().expect("that of the other script begins at once");
            second_begun.recv_timeout(SHORT).expect_err("the second waits for the first");
            end_third.send(()).expect("the other script works");
            end_first.send(()).expect("the first works");
            second_begun.recv().expect("the second begins");
            end_second.send(()).expect("the second works");
        });
        let second = async {
            // The first one was queued before.
            tokio::task::yield_now().await;
            own.run(second).await
        };
        let (first, second, third, watched) =
            tokio::join!(own.run(first), second, other.run(third), watch);
        watched.expect("the order is right");
        assert_eq!((first, second, third), (Ok(()), Ok(()), Ok(())));
        assert!(own.take_worked() > SHORT, "both pieces of work count");
        assert_eq!(own.take_worked(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_job_whose_call_has_ended_runs_to_its_end() {
        let own = Heavy::default();
        let (first, begun, end) = work();
        {
            let mut running = std::pin::pin!(own.run(first));
            tokio::select! {
                biased;
                _ = &mut running => panic!("it waits to be told"),
                () = tokio::task::yield_now() => {}
            }
            begun.recv().expect("it begins");
        }
        let next = own.run(|| ());
        let mut next = std::pin::pin!(next);
        assert!(futures::poll!(&mut next).is_pending(), "the work of the ended call goes on");
        end.send(()).expect("it works");
        assert_eq!(next.await, Ok(()));
    }
}
