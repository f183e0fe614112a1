//! Inline calls: calls of short functions run where they are awaited, on the operator's thread.
//!
//! Such a call costs less than waking a thread of the script. The function itself bounds it, so no watchdog is needed; if it has loops,
//! a call that takes long is aborted, and repeated on a thread. A script whose inline calls take longer than expected uses its threads
//! instead: for the rest of a time window, or for minutes after one long call.

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

/// For how long the script uses its threads after a call that took longer than [`LONG`].
const PROBATION: Duration = Duration::from_mins(10);
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
    /// When the last call ended that took longer than [`LONG`].
    long: Option<RealInstant>,
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
            spent.add(time, is_repeated);
        }
        (!is_repeated).then_some(Ok(result))
    }
}

impl Spent {
    /// Returns whether the script may use the operator's thread.
    fn admits(&mut self, now: RealInstant) -> bool {
        self.long.is_none_or(|it| now.duration_since(it) >= PROBATION) && self.share.admits(now)
    }

    fn add(&mut self, time: Duration, is_repeated: bool) {
        self.share.add(time);
        // An aborted call was expected to be long.
        if time > if is_repeated { ABORTED_AFTER } else { LONG } {
            self.long = Some(RealInstant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, PROBATION, RealInstant, Spent};

    #[test]
    fn a_script_uses_its_threads_for_minutes_after_a_long_call() {
        let mut spent = Spent::default();
        spent.add(LONG * 2, true);
        assert!(spent.admits(RealInstant::now() + LONG * 100));
        spent.add(LONG * 2, false);
        let now = RealInstant::now();
        assert!(!spent.admits(now + PROBATION / 2));
        assert!(spent.admits(now + PROBATION));
    }
}
