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

/// Interval of the checks whether the process is idle. What an idle operator does every ten seconds maps up to 8 MiB of its program.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of checks until the start is over: an idle operator is small two seconds after its start.
const CHECK_INTERVAL_AT_START: Duration = Duration::from_secs(1);
/// A process that uses less than this share of CPU time between two checks is idle.
const IDLE_SHARE_MAX: f64 = 0.01;
/// A process that has used less CPU time than this since the last release has little to release. A list of some hundred objects
/// takes this much.
const BURST_MIN: Duration = Duration::from_millis(100);

/// The load of the process between two checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Busy,
    Idle,
    /// The first idle time after much work.
    IdleAfterBurst,
}

/// Releases memory whenever the process becomes idle after a burst, until `stop`; at any other idle time only pages of the program, if
/// many have been mapped again.
pub(super) async fn release(stop: CancellationToken) {
    let mut usage = CpuUsage::default();
    let mut pages = program_pages::ProgramPages::default();
    loop {
        let pause = if usage.is_started { CHECK_INTERVAL } else { CHECK_INTERVAL_AT_START };
        tokio::select! {
            biased; // at the end of the process, everything is released anyway
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
        match usage.load(cpu_time(), pause) {
            Load::Busy => {}
            Load::Idle => pages.release_if_grown(),
            Load::IdleAfterBurst => {
                heap::give_back();
                pages.release();
            }
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
    /// Returns the load in the `pause` since the last check. Idle after a burst: little CPU time was used since then, and much since the
    /// end of the last burst.
    fn load(&mut self, cpu_time: Duration, pause: Duration) -> Load {
        let lately = cpu_time.saturating_sub(self.last_check);
        self.last_check = cpu_time;
        if lately > pause.mul_f64(IDLE_SHARE_MAX) {
            return Load::Busy;
        }
        if self.is_started && cpu_time.saturating_sub(self.last_release) < BURST_MIN {
            return Load::Idle;
        }
        self.last_release = cpu_time;
        self.is_started = true;
        Load::IdleAfterBurst
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        CHECK_INTERVAL, CpuUsage,
        Load::{self, Busy, Idle, IdleAfterBurst},
    };

    fn loads(cpu_time: &[u64]) -> Vec<Load> {
        let mut usage = CpuUsage::default();
        let load = |it: &u64| usage.load(Duration::from_millis(*it), CHECK_INTERVAL);
        cpu_time.iter().map(load).collect()
    }

    #[test]
    fn the_first_idle_time_ends_the_start() {
        assert_eq!(loads(&[20, 21]), [IdleAfterBurst, Idle]);
        assert_eq!(loads(&[400, 900, 910, 912]), [Busy, Busy, IdleAfterBurst, Idle]);
    }

    #[test]
    fn every_burst_is_followed_by_one_release() {
        let expected = [IdleAfterBurst, Busy, Busy, IdleAfterBurst, Idle];
        assert_eq!(loads(&[20, 900, 2500, 2510, 2512]), expected);
    }

    #[test]
    fn a_process_that_is_never_idle_releases_nothing() {
        assert_eq!(loads(&[1000, 2000, 3000]), [Busy; 3]);
    }

    #[test]
    fn little_work_is_no_burst() {
        let expected = [IdleAfterBurst, Idle, Idle, Idle, Idle, Idle, IdleAfterBurst];
        assert_eq!(loads(&[20, 40, 60, 80, 100, 119, 125]), expected);
    }
}
