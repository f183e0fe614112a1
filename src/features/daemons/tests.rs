//! Claims about daemons and timers beside what `tests/it` shows of them in a reactor.

use super::runner::{Runner, Work};

/// With less than this, the task of a tokio runtime takes 256 bytes; with more, 384.
const WORK_MAX: usize = 128;

#[test]
fn those_that_wait_are_small() {
    assert!(size_of::<Work>() <= WORK_MAX, "{} bytes in a call", size_of::<Work>());
    assert!(size_of::<Runner>() <= 128, "{} bytes at rest", size_of::<Runner>());
}
