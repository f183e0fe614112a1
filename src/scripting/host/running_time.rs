//! What a thread has computed, whoever else computes on the machine.

use std::time::Duration;

/// What the calling thread has computed in its life.
pub(crate) fn running_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // The kernel counts from zero up.
    Duration::try_from(time).unwrap_or_default()
}
