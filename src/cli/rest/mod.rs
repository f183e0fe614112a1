//! Returns memory to the system after a burst of work.
//!
//! A list of thousands of objects, a burst of events, or the start itself leave unused memory: free blocks between used ones, and
//! pages of program text that were needed once. The system cannot detect that; so the process releases them when it becomes idle.
//! Pages that are needed again are loaded on demand, in microseconds.

mod text;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::heap;

/// How often to check.
const LOOK: Duration = Duration::from_secs(5);
/// The same until the start is over: an idle operator is small two seconds after its start.
const LOOK_AT_START: Duration = Duration::from_secs(1);
/// A process that uses less than this share of CPU time between two checks is idle.
const QUIET: f64 = 0.01;
/// A process that has used less CPU time than this since the last release has little to release. A list of some hundred objects
/// takes this much.
const RUSH: Duration = Duration::from_millis(100);

/// Releases memory whenever the process becomes idle after a burst, until `stop`.
pub(super) async fn give_back(stop: CancellationToken) {
    let mut pulse = Pulse::default();
    loop {
        let pause = if pulse.is_started { LOOK } else { LOOK_AT_START };
        tokio::select! {
            biased; // at the end of the process, everything is released anyway
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
        if pulse.rests_after_rush(computed(), pause) {
            heap::give_back();
            text::give_back();
        }
    }
}

/// Returns the CPU time of the process so far.
fn computed() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The CPU time at the last checks.
#[derive(Default)]
struct Pulse {
    seen: Duration,
    /// At the end of the last burst.
    rested: Duration,
    /// Whether the process was idle since the start: the start counts as a burst, however short it was.
    is_started: bool,
}

impl Pulse {
    /// Returns whether to release now: little CPU time was used in the `pause` since the last check, and much since the last
    /// release.
    fn rests_after_rush(&mut self, computed: Duration, pause: Duration) -> bool {
        let lately = computed.saturating_sub(self.seen);
        self.seen = computed;
        let is_rush = !self.is_started || computed.saturating_sub(self.rested) >= RUSH;
        if lately > pause.mul_f64(QUIET) || !is_rush {
            return false;
        }
        self.rested = computed;
        self.is_started = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LOOK, Pulse};

    fn looks(computed: &[u64]) -> Vec<bool> {
        let mut pulse = Pulse::default();
        computed.iter().map(|it| pulse.rests_after_rush(Duration::from_millis(*it), LOOK)).collect()
    }

    #[test]
    fn the_first_rest_is_the_end_of_the_start() {
        assert_eq!(looks(&[20, 21]), [true, false]);
        assert_eq!(looks(&[400, 900, 910, 912]), [false, false, true, false]);
    }

    #[test]
    fn every_rush_is_followed_by_one_rest() {
        assert_eq!(looks(&[20, 900, 2500, 2510, 2512]), [true, false, false, true, false]);
    }

    #[test]
    fn a_process_that_never_rests_is_left_alone() {
        assert_eq!(looks(&[1000, 2000, 3000]), [false; 3]);
    }

    #[test]
    fn small_work_is_no_rush() {
        assert_eq!(looks(&[20, 50, 80, 110, 119, 125]), [true, false, false, false, false, true]);
    }
}
