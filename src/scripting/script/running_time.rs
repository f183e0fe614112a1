//! The CPU time of a thread, which does not depend on other load of the machine.

use std::time::Duration;

/// Returns the CPU time that the calling thread has used since its start.
pub(crate) fn running_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // The kernel counts up from zero.
    Duration::try_from(time).unwrap_or_default()
}
