//! Functions that do not begin inline for a while.

use std::collections::BTreeMap;

/// Number of calls in a row that take long, or wait, before a function uses the thread of the script for the next [`PROBATION`] calls.
const STRIKES_MAX: u8 = 3;
const PROBATION: u32 = 1000;

/// The functions, by slot, whose last calls took long or waited.
#[derive(Default)]
pub(in crate::scripting) struct Probations(BTreeMap<u32, Probation>);

struct Probation {
    strikes: u8,
    /// The number of calls until the next inline call; `None` if there will be none.
    left: Option<u32>,
}

impl Probations {
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
    pub(in crate::scripting) fn ban(&mut self, slot: u32) {
        self.0.insert(slot, Probation { strikes: 0, left: None });
    }

    /// Records whether an inline call of this function was short.
    pub(in crate::scripting) fn record(&mut self, slot: u32, is_short: bool) {
        if is_short {
            self.0.remove(&slot);
            return;
        }
        let it = self.0.entry(slot).or_insert(Probation { strikes: 0, left: Some(0) });
        it.strikes += 1;
        if it.strikes == STRIKES_MAX {
            *it = Probation { strikes: 0, left: Some(PROBATION) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PROBATION, Probations, STRIKES_MAX};

    #[test]
    fn a_short_call_clears_the_strikes() {
        let mut probations = Probations::default();
        for _ in 0..10 {
            for _ in 1..STRIKES_MAX {
                assert!(probations.admit(1));
                probations.record(1, false);
            }
            probations.record(1, true);
        }
        assert!(probations.0.is_empty());
    }

    #[test]
    fn a_function_whose_calls_are_long_uses_its_thread_for_a_number_of_calls() {
        let mut probations = Probations::default();
        for _ in 0..3 {
            for _ in 0..STRIKES_MAX {
                assert!(probations.admit(1));
                probations.record(1, false);
            }
            for _ in 0..PROBATION {
                assert!(!probations.admit(1));
                assert!(probations.admit(2));
            }
        }
        probations.ban(1);
        assert!((0..2 * PROBATION).all(|_| !probations.admit(1)));
    }
}
