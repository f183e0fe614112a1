//! Under load, the thread of the operator wakes up at most every few milliseconds.
//!
//! Each response wakes the thread. With several objects at work, one comes every millisecond, and until then other processes have
//! replaced the content of the processor's caches: reading it again takes a third of the CPU time. So the thread sleeps a
//! little before it waits for responses, and then handles all that have arrived, as network cards coalesce their interrupts. Without
//! load, nothing is delayed.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Builder, time::Instant};

/// Number of mutating requests in flight from which on there is load. An object usually has one at a time, and must not wait.
const LOAD_MIN: usize = 4;

/// Minimum time between two wake-ups under load: 200 per second handle some thousand responses, more than an API server sends.
const INTERVAL: Duration = Duration::from_millis(5);

/// Makes the thread of a runtime coalesce its wake-ups while there is load, which the number of mutating requests in flight shows.
pub(super) fn coalesce_wakeups(
    runtime: &mut Builder,
    in_flight: impl Fn() -> usize + Send + Sync + 'static,
) {
    #[expect(clippy::disallowed_methods, reason = "a timer of tokio would wake up the thread")]
    let sleep = std::thread::sleep;
    coalesce_with(sleep, runtime, in_flight);
}

fn coalesce_with(
    sleep: impl Fn(Duration) + Send + Sync + 'static,
    runtime: &mut Builder,
    in_flight: impl Fn() -> usize + Send + Sync + 'static,
) {
    let woken = Arc::new(Mutex::new(None::<Instant>));
    let last = Arc::clone(&woken);
    runtime.on_thread_unpark(move || *woken.lock() = Some(Instant::now()));
    runtime.on_thread_park(move || {
        if in_flight() >= LOAD_MIN {
            let since = last.lock().map_or(INTERVAL, |it| it.elapsed());
            sleep(INTERVAL.saturating_sub(since));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Arc, Builder, Duration, INTERVAL, LOAD_MIN, Mutex, coalesce_with};

    /// Returns how long a thread sleeps before it waits, if it has worked for this time after it has woken up.
    fn pause(in_flight: usize, worked: Duration) -> Option<Duration> {
        let slept = Arc::new(Mutex::new(Vec::new()));
        let sleep = {
            let slept = Arc::clone(&slept);
            move |pause| slept.lock().push(pause)
        };
        let mut runtime = Builder::new_current_thread();
        coalesce_with(sleep, &mut runtime, move || in_flight);
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let wait = || tokio::time::sleep(Duration::from_millis(1));
            wait().await;
            slept.lock().clear();
            tokio::time::advance(worked).await;
            wait().await;
            slept.lock().first().copied()
        })
    }

    #[test]
    fn only_load_delays_and_at_most_until_the_interval_is_over() {
        let worked = Duration::from_millis(2);
        assert_eq!(pause(0, worked), None);
        assert_eq!(pause(LOAD_MIN - 1, worked), None);
        assert_eq!(pause(LOAD_MIN, worked), INTERVAL.checked_sub(worked));
        assert_eq!(pause(1000, worked), INTERVAL.checked_sub(worked));
        assert_eq!(pause(LOAD_MIN, INTERVAL), Some(Duration::ZERO));
        assert_eq!(pause(LOAD_MIN, 2 * INTERVAL), Some(Duration::ZERO));
    }
}
