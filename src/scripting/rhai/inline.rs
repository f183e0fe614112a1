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
    stopwatch::RealInstant,
};
use crate::telemetry::ScriptUsage;

/// Running time of a call after which the script uses its threads for [`PROBATION`]: a hundred times as much as a short call takes.
const LONG: Duration = Duration::from_millis(1);
const PROBATION: Duration = Duration::from_mins(10);
/// About what a call on another thread costs the operator's thread: an inline call of this length delays nothing.
const FREE: Duration = Duration::from_micros(20);
/// How much time beyond [`FREE`] the calls of a script may take in total within a window.
const ALLOWED: Duration = Duration::from_millis(2);
const WINDOW: Duration = Duration::from_millis(20);
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
    /// When the current window began.
    began: Option<RealInstant>,
    /// Time beyond [`FREE`] within the current window.
    time: Duration,
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
    /// Returns whether the script may use the operator's thread; begins a new window if the current one is over.
    fn admits(&mut self, now: RealInstant) -> bool {
        if self.long.is_some_and(|it| now.duration_since(it) < PROBATION) {
            return false;
        }
        if self.began.is_none_or(|it| now.duration_since(it) >= WINDOW) {
            (self.began, self.time) = (Some(now), Duration::ZERO);
        }
        self.time < ALLOWED
    }

    fn add(&mut self, time: Duration) {
        self.time += time.saturating_sub(FREE);
        if time > LONG {
            self.long = Some(RealInstant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, FREE, LONG, PROBATION, RealInstant, Spent, WINDOW};

    #[test]
    fn a_script_that_takes_long_uses_its_threads_for_a_while() {
        let (mut spent, now) = (Spent::default(), RealInstant::now());
        for _ in 0..1000 {
            assert!(spent.admits(now));
            spent.add(FREE);
        }
        for _ in 0..4 {
            assert!(spent.admits(now));
            spent.add(FREE + ALLOWED / 4);
        }
        assert!(!spent.admits(now));
        assert!(spent.admits(now + WINDOW));
        spent.add(FREE + LONG);
        assert!(!spent.admits(now + WINDOW));
        assert!(spent.admits(RealInstant::now() + PROBATION));
    }
}
