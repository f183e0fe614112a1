//! The priority of the threads that run scripts.

/// What is added to the niceness of a thread: the share of the operator's own thread becomes three times as large. With more, a thread
/// that is interrupted while it holds a lock of the allocator would keep the operator's thread waiting for longer.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Lowers the priority of the calling thread: scripts that compute all the time must not delay the operator's own thread.
pub(crate) fn lower_priority() {
    // Elsewhere, priorities belong to processes.
    #[cfg(target_os = "linux")]
    rustix::process::nice(NICENESS).ok();
}
