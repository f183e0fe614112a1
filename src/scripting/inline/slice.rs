//! The limits of one slice on the operator's thread.

use std::time::Duration;

use super::share::{LONG, RealInstant};

/// Maximum number of loop iterations and calls in a slice. Its duration is checked after a few of them.
const STEPS_MAX: u32 = 1000;
const STEPS_OF_CHECK: u32 = 16;
/// Maximum number of bytes by which the memory of the VM may grow in a slice: what makes or copies larger values is long.
const GROWTH_MAX: usize = 256 << 10;
/// CPU time beyond [`LONG`] after which a call is aborted, because it runs something that cannot be suspended. It is repeated on the thread of
/// the script.
pub(in crate::scripting) const ABORTED_AFTER: Duration = Duration::from_millis(10);

/// A slice that runs inline.
#[derive(Clone, Copy)]
pub(in crate::scripting) struct InlineSlice {
    /// `None` if only the steps count, because the result must not depend on time.
    began: Option<RealInstant>,
    /// The memory of the VM at the beginning, in bytes.
    memory: usize,
    steps: u32,
    is_over: bool,
    is_aborted: bool,
}

impl InlineSlice {
    pub(in crate::scripting) fn new(began: Option<RealInstant>, memory: usize) -> Self {
        InlineSlice { began, memory, steps: 0, is_over: false, is_aborted: false }
    }

    /// Counts a step. Returns whether the slice must end.
    pub(in crate::scripting) fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        let is_checked = self.steps.is_multiple_of(STEPS_OF_CHECK);
        self.is_over |= is_checked
            && (self.steps >= STEPS_MAX || self.began.is_some_and(|it| it.elapsed() > LONG));
        self.is_over
    }

    /// Returns whether the slice must end.
    pub(in crate::scripting) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Makes the slice end if the VM has much more memory than at the beginning.
    pub(in crate::scripting) fn check_memory(&mut self, memory: usize) {
        self.is_over |= memory > self.memory + GROWTH_MAX;
    }

    /// Returns whether a call that cannot be suspended is aborted.
    pub(in crate::scripting) fn aborts(self) -> bool {
        self.began.is_some()
    }

    /// Returns this slice, aborted.
    pub(in crate::scripting) fn aborted(self) -> Self {
        InlineSlice { is_aborted: true, ..self }
    }

    /// Returns whether it was aborted.
    pub(in crate::scripting) fn is_aborted(self) -> bool {
        self.is_aborted
    }
}

#[cfg(test)]
mod tests {
    use super::{GROWTH_MAX, InlineSlice, LONG, RealInstant, STEPS_MAX, STEPS_OF_CHECK};

    #[test]
    fn a_slice_ends_after_many_steps_or_some_time() {
        let mut counted = InlineSlice::new(None, 0);
        let steps = (1..10 * STEPS_MAX).find(|_| counted.step()).unwrap_or_default();
        assert!((STEPS_MAX..STEPS_MAX + STEPS_OF_CHECK).contains(&steps), "{steps}");
        let before = RealInstant::now();
        while before.elapsed() <= LONG {}
        let mut timed = InlineSlice::new(Some(before), 0);
        assert_eq!((1..100).find(|_| timed.step()), Some(STEPS_OF_CHECK));
    }

    #[test]
    fn a_slice_ends_after_much_new_memory() {
        let mut slice = InlineSlice::new(None, GROWTH_MAX);
        for memory in [0, GROWTH_MAX, 2 * GROWTH_MAX] {
            slice.check_memory(memory);
            assert!(!slice.step(), "{memory}");
        }
        slice.check_memory(2 * GROWTH_MAX + 1);
        assert!(slice.step());
    }
}
