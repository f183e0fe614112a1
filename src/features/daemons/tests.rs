//! Claims about daemons and timers beside what `tests/it` shows of them in a reactor.

use std::future::Future;

use super::runner::Runner;

/// The size of what a function would return, without calling it.
fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn the_life_of_one_that_waits_takes_less_than_a_kilobyte() {
    assert!(size(Runner::live) < 1024, "{} bytes", size(Runner::live));
}
