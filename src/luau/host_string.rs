//! Marks the next long string as the host's own, which is exempt from the limit for strings.

use std::cell::Cell;

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether the next long string that a VM of this thread allocates is the host's own.
#[inline]
pub(crate) fn expect(is_expected: bool) {
    EXPECTED.set(is_expected);
}

/// Returns whether it is, and resets the mark.
#[inline]
pub(crate) fn take() -> bool {
    EXPECTED.take()
}
