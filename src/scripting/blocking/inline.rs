//! Inline calls: calls of short functions run where they are awaited, on the operator's thread.
//!
//! Such a call costs less than waking a thread of the script. The function itself bounds it, so no watchdog is needed; if it has loops,
//! a call that takes long is aborted, and repeated on a thread. A script whose inline calls take longer than expected uses its threads
//! instead: for the rest of a time window, or for longer after one long call.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    common::{Budget, Common},
    control::{self, Control, took},
    link::CallLink,
};
use crate::scripting::inline::{ABORTED_AFTER, InlineShare, LONG, LongFunctions, RealInstant};
use crate::telemetry::ScriptUsage;

/// For how long the script uses its threads after a call that took longer than [`LONG`]. One such call may be due to the machine: a call that
/// touches new memory can take as long.
const PROBATION_MIN: Duration = Duration::from_millis(100);
/// The same after many such calls: each one that follows the last one soon doubles the time.
const PROBATION_MAX: Duration = Duration::from_mins(10);
/// A call follows soon within this many times the probation.
const SOON: u32 = 10;
/// Calls run inline while their script holds at most this fraction (one divided by it) of its memory limit.
const MEMORY_SHARE: isize = 4;

/// A function whose calls may run inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scripting) enum InlineFunction {
    /// Every call is short.
    Straight,
    /// Calls can be aborted and repeated: they have no effects. With its slot.
    Repeatable(u32),
}

/// The inline calls of one script.
pub(super) struct Inline {
    /// Shared by all inline calls, which run one after another; none of them is cancelled or stuck.
    link: Arc<CallLink>,
    usage: ScriptUsage,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    share: InlineShare,
    functions: LongFunctions,
    probation: Option<Probation>,
}

/// A time without inline calls.
#[derive(Clone, Copy)]
struct Probation {
    /// When the call ended that took longer than [`LONG`].
    began: RealInstant,
    length: Duration,
}

impl Inline {
    pub(super) fn new(usage: ScriptUsage) -> Self {
        Inline { link: Arc::default(), usage, spent: Mutex::default() }
    }

    /// Runs a job if its function is short and no other call of the script computes; otherwise, or if it takes long, returns `None`: it
    /// must run on a thread. The inner error is a panic.
    pub(super) fn run<T>(
        &self,
        common: &Arc<Common>,
        function: impl FnOnce() -> Option<InlineFunction>,
        job: impl FnOnce() -> T,
    ) -> Option<thread::Result<T>> {
        // With less memory left, this call might restart the script, which drops values that may be too deep for this stack.
        if common.ledger.held() > common.ledger.limit().cast_signed() / MEMORY_SHARE {
            return None;
        }
        // If operations are counted, the result must not depend on time.
        let is_timed = matches!(common.budget, Budget::Time(_));
        if is_timed && !self.spent.lock().admits(RealInstant::now()) {
            return None;
        }
        let ticket = common.turns.ask_now()?;
        // Only now: the call that had the turn before may have discarded the script.
        let function = function()?;
        let repeatable = match function {
            InlineFunction::Straight => None,
            InlineFunction::Repeatable(slot) => Some(slot),
        };
        if repeatable.is_some_and(|it| !self.spent.lock().functions.admit(it)) {
            return None;
        }
        let control = Control::new(Arc::clone(common), Arc::clone(&self.link), None);
        let control = if repeatable.is_some() { control.repeatable() } else { control };
        let timed = || {
            let result = job();
            (result, took(), control::must_repeat())
        };
        let ended = panic::catch_unwind(AssertUnwindSafe(|| control.scope((ticket, None), timed)));
        let (result, time, is_repeated) = match ended {
            Ok(ended) => ended,
            Err(panic) => return Some(Err(panic)),
        };
        self.usage.add_time(time);
        let mut spent = self.spent.lock();
        if let Some(slot) = repeatable {
            spent.functions.record(slot, !is_repeated);
        }
        if is_timed {
            spent.add(time, is_repeated, RealInstant::now());
        }
        (!is_repeated).then_some(Ok(result))
    }
}

impl Spent {
    /// Returns whether the script may use the operator's thread.
    fn admits(&mut self, now: RealInstant) -> bool {
        self.probation.is_none_or(|it| now.duration_since(it.began) >= it.length)
            && self.share.admits(now)
    }

    fn add(&mut self, time: Duration, is_repeated: bool, now: RealInstant) {
        self.share.add(time);
        // An aborted call was expected to be long.
        if time > if is_repeated { ABORTED_AFTER } else { LONG } {
            let last = self.probation.filter(|it| now.duration_since(it.began) < it.length * SOON);
            let length = last.map_or(PROBATION_MIN, |it| (it.length * 2).min(PROBATION_MAX));
            self.probation = Some(Probation { began: now, length });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, PROBATION_MAX, PROBATION_MIN, RealInstant, SOON, Spent};

    #[test]
    fn a_script_uses_its_threads_for_a_while_after_a_long_call() {
        let (mut spent, now) = (Spent::default(), RealInstant::now());
        spent.add(LONG * 2, true, now);
        assert!(spent.admits(now));
        spent.add(LONG * 2, false, now);
        assert!(!spent.admits(now + PROBATION_MIN / 2));
        assert!(spent.admits(now + PROBATION_MIN));
    }

    #[test]
    fn long_calls_one_after_the_other_are_inline_less_and_less_often() {
        let (mut spent, mut now) = (Spent::default(), RealInstant::now());
        let end = now + PROBATION_MAX;
        let mut calls = 0;
        while now < end {
            spent.add(LONG * 2, false, now);
            while !spent.admits(now) {
                now += PROBATION_MIN;
            }
            calls += 1;
        }
        assert_eq!(calls, 13);
    }

    #[test]
    fn a_long_call_now_and_then_has_no_such_effect() {
        let (mut spent, mut now) = (Spent::default(), RealInstant::now());
        for _ in 0..100 {
            spent.add(LONG * 2, false, now);
            assert!(spent.admits(now + PROBATION_MIN));
            now += PROBATION_MIN * SOON;
        }
    }
}
