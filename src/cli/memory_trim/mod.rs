//! Returns memory to the system after a burst of work.
//!
//! A list of thousands of objects, a burst of events, or the start itself leave unused memory: free blocks between used ones, and pages of
//! program text that were needed once. The system cannot detect that, so the process releases them when it becomes idle. Pages that are
//! needed again are loaded on demand, in microseconds.

mod program_pages;

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::cli::process::cpu_time;
use crate::heap;

/// Interval of the checks whether the process is idle.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of checks until the start is over: an idle operator is small two seconds after its start.
const CHECK_INTERVAL_AT_START: Duration = Duration::from_secs(1);
/// A process that uses less than this share of CPU time between two checks is idle.
const IDLE_SHARE_MAX: f64 = 0.01;
/// A process that has used less CPU time than this since the last release has little to release. A list of some hundred objects
/// takes this much.
const BURST_MIN: Duration = Duration::from_millis(100);

/// Releases memory whenever the process becomes idle after a burst, until `stop`.
pub(super) async fn release(stop: CancellationToken) {
    let mut usage = CpuUsage::default();
    loop {
        let pause = if usage.is_started { CHECK_INTERVAL } else { CHECK_INTERVAL_AT_START };
        tokio::select! {
            biased; // at the end of the process, everything is released anyway
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
        if usage.is_idle_after_burst(cpu_time(), pause) {
            heap::give_back();
            program_pages::release();
        }
    }
}

/// The CPU time at the last checks.
#[derive(Default)]
struct CpuUsage {
    last_check: Duration,
    /// At the end of the last burst.
    last_release: Duration,
    /// Whether the process was idle since the start: the start counts as a burst, however short it was.
    is_started: bool,
}

impl CpuUsage {
    /// Returns whether to release now: little CPU time was used in the `pause` since the last check, and much since the last
    /// release.
    fn is_idle_after_burst(&mut self, cpu_time: Duration, pause: Duration) -> bool {
        let lately = cpu_time.saturating_sub(self.last_check);
        self.last_check = cpu_time;
        let is_burst = !self.is_started || cpu_time.saturating_sub(self.last_release) >= BURST_MIN;
        if lately > pause.mul_f64(IDLE_SHARE_MAX) || !is_burst {
            return false;
        }
        self.last_release = cpu_time;
        self.is_started = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CHECK_INTERVAL, CpuUsage};

    fn releases(cpu_time: &[u64]) -> Vec<bool> {
        let mut usage = CpuUsage::default();
        cpu_time
            .iter()
            .map(|it| usage.is_idle_after_burst(Duration::from_millis(*it), CHECK_INTERVAL))
            .collect()
    }

    #[test]
    fn the_first_idle_time_ends_the_start() {
        assert_eq!(releases(&[20, 21]), [true, false]);
        assert_eq!(releases(&[400, 900, 910, 912]), [false, false, true, false]);
    }

    #[test]
    fn every_burst_is_followed_by_one_release() {
        assert_eq!(releases(&[20, 900, 2500, 2510, 2512]), [true, false, false, true, false]);
    }

    #[test]
    fn a_process_that_is_never_idle_releases_nothing() {
        assert_eq!(releases(&[1000, 2000, 3000]), [false; 3]);
    }

    #[test]
    fn little_work_is_no_burst() {
        assert_eq!(
            releases(&[20, 50, 80, 110, 119, 125]),
            [true, false, false, false, false, true]
        );
    }
}
