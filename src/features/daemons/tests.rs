//! Claims about daemons and timers beside what `tests/it` shows of them in a reactor.

use std::future::Future;

use super::runner;

/// The size of what a function would return, without calling it.
fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn the_task_of_one_that_waits_is_small() {
    assert!(size(runner::work) < 288, "{} bytes", size(runner::work));
}
