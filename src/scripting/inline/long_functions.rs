//! Functions that do not begin inline for a while.

use std::collections::BTreeMap;

/// Number of calls in a row that take long, or wait, before a function uses the thread of the script for the next [`CALLS_ON_THREAD`] calls.
const LONG_CALLS_MAX: u8 = 3;
const CALLS_ON_THREAD: u32 = 1000;

/// The functions, by slot, whose last calls took long or waited.
#[derive(Default)]
pub(in crate::scripting) struct LongFunctions(BTreeMap<u32, LongFunction>);

struct LongFunction {
    long_calls: u8,
    /// The number of calls until the next inline call; `None` if there will be none.
    left: Option<u32>,
}

impl LongFunctions {
    /// Returns whether the next call of this function may be inline.
    pub(in crate::scripting) fn admit(&mut self, slot: u32) -> bool {
        match self.0.get_mut(&slot).map(|it| &mut it.left) {
            None | Some(Some(0)) => true,
            Some(None) => false,
            Some(Some(left)) => {
                *left -= 1;
                false
            }
        }
    }

    /// Makes all further calls of this function use the thread of the script.
    pub(in crate::scripting) fn exclude(&mut self, slot: u32) {
        self.0.insert(slot, LongFunction { long_calls: 0, left: None });
    }

    /// Records whether an inline call of this function was short.
    pub(in crate::scripting) fn record(&mut self, slot: u32, is_short: bool) {
        if is_short {
            self.0.remove(&slot);
            return;
        }
        let it = self.0.entry(slot).or_insert(LongFunction { long_calls: 0, left: Some(0) });
        it.long_calls += 1;
        if it.long_calls == LONG_CALLS_MAX {
            *it = LongFunction { long_calls: 0, left: Some(CALLS_ON_THREAD) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLS_ON_THREAD, LONG_CALLS_MAX, LongFunctions};

    #[test]
    fn a_short_call_ends_the_row_of_long_ones() {
        let mut functions = LongFunctions::default();
        for _ in 0..10 {
            for _ in 1..LONG_CALLS_MAX {
                assert!(functions.admit(1));
                functions.record(1, false);
            }
            functions.record(1, true);
        }
        assert!(functions.0.is_empty());
    }

    #[test]
    fn a_function_whose_calls_are_long_uses_its_thread_for_a_number_of_calls() {
        let mut functions = LongFunctions::default();
        for _ in 0..3 {
            for _ in 0..LONG_CALLS_MAX {
                assert!(functions.admit(1));
                functions.record(1, false);
            }
            for _ in 0..CALLS_ON_THREAD {
                assert!(!functions.admit(1));
                assert!(functions.admit(2));
            }
        }
        functions.exclude(1);
        assert!((0..2 * CALLS_ON_THREAD).all(|_| !functions.admit(1)));
    }
}
