//! Inline calls: calls of short functions (see `short.rs`) run where they are awaited, on the operator's thread.
//!
//! Such a call costs less than waking a thread of the script. The function itself bounds it, so no watchdog is needed. A script whose
//! inline calls take longer than expected uses its threads instead: for the rest of a time window, or for minutes after one long call.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    control::{Budget, Common, Control, took},
    link::CallLink,
};
use crate::scripting::inline::{InlineShare, LONG, RealInstant};
use crate::telemetry::ScriptUsage;

/// For how long the script uses its threads after a call that took longer than [`LONG`].
const PROBATION: Duration = Duration::from_mins(10);
/// Calls run inline while their script holds at most this fraction (one divided by it) of its memory limit.
const MEMORY_SHARE: isize = 4;

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
    /// When the last call ended that took longer than [`LONG`].
    long: Option<RealInstant>,
}

impl Inline {
    pub(super) fn new(usage: ScriptUsage) -> Self {
        Inline { link: Arc::default(), usage, spent: Mutex::default() }
    }

    /// Runs a job if it is short and no other call of the script computes; otherwise returns the job. The inner error is a panic.
    pub(super) fn run<T, Job: FnOnce() -> T>(
        &self,
        common: &Arc<Common>,
        is_short: impl FnOnce() -> bool,
        job: Job,
    ) -> Result<thread::Result<T>, Job> {
        // With less memory left, this call might restart the script, which drops values that may be too deep for this stack.
        if common.ledger.held() > common.ledger.limit().cast_signed() / MEMORY_SHARE {
            return Err(job);
        }
        // If operations are counted, the result must not depend on time.
        let is_timed = matches!(common.budget, Budget::Time(_));
        if is_timed && !self.spent.lock().admits(RealInstant::now()) {
            return Err(job);
        }
        let Some(ticket) = common.turns.ask_now() else { return Err(job) };
        // Only now: the call that had the turn before may have discarded the script.
        if !is_short() {
            return Err(job);
        }
        let control = Control::new(Arc::clone(common), Arc::clone(&self.link), None);
        let timed = || {
            let result = job();
            (result, took())
        };
        let result = panic::catch_unwind(AssertUnwindSafe(|| control.scope((ticket, None), timed)));
        Ok(result.map(|(result, time)| {
            self.usage.add_time(time);
            if is_timed {
                self.spent.lock().add(time);
            }
            result
        }))
    }
}

impl Spent {
    /// Returns whether the script may use the operator's thread.
    fn admits(&mut self, now: RealInstant) -> bool {
        self.long.is_none_or(|it| now.duration_since(it) >= PROBATION) && self.share.admits(now)
    }

    fn add(&mut self, time: Duration) {
        self.share.add(time);
        if time > LONG {
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
        spent.add(LONG * 2);
        let now = RealInstant::now();
        assert!(!spent.admits(now + PROBATION / 2));
        assert!(spent.admits(now + PROBATION));
    }
}
