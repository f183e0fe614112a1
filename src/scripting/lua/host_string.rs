//! Whether the next long string is the host's own, which no limit for strings applies to.

use std::cell::Cell;

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Says whether the next long string that the VM of this thread allocates is the host's own.
pub(super) fn expect(is_expected: bool) {
    EXPECTED.set(is_expected);
}

/// Returns whether it is, and expects no other.
pub(super) fn take() -> bool {
    EXPECTED.take()
}
