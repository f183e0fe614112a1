//! The undecided handlers of one object: those with a filter that has failed.
//!
//! A filter that fails affects only its own handler. Until the filter is called again, it is unknown whether the handler applies to the
//! object: it is not called, and neither the finalizer nor the end of a change is decided without it. The pauses are those of other
//! unexpected errors, but at least ten times as long as the filter has taken. Times are durations since any fixed moment.
//!
//! Before: `handling/asking.rs`, which calls the filters. After: `reactor/object/undecided.rs`, which waits.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::Value;

use super::cause::Change;
use crate::logic::{
    handlers::handler::{Category, Handler, Mark},
    object::reason::Reason,
};
use crate::sorted::CollectSorted as _;

/// A slow filter pauses for this many times its duration: so a handler uses at most about a tenth of the time of its object.
pub const REST: u32 = 10;

/// A filter that takes less than this may be called again at once when an event arrives.
const LONG: Duration = Duration::from_secs(1);

/// The undecided handlers of one object, and the change that was handled without them.
#[derive(Debug, Default)]
pub struct Undecided {
    all: Vec<UndecidedEntry>,
    /// The essence that the other handlers have seen, of a change that all but the undecided handlers have finished.
    settled: Option<Arc<Value>>,
}

#[derive(Debug)]
struct UndecidedEntry {
    mark: Mark,
    category: Category,
    /// Consecutive failed attempts.
    failures: usize,
    /// Not called before this time; `None` if it is called again only at another event.
    until: Option<Duration>,
    /// It takes so long that it is never called earlier.
    is_slow: bool,
    /// It was undecided in the current cycle.
    is_met: bool,
}

/// The failure of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterFailure {
    /// The number of consecutive failures, including this one.
    pub attempt: usize,
    /// The pause before it is called again; `None` if it is called again only at another event.
    pub pause: Option<Duration>,
}

impl Undecided {
    /// Begins a cycle: no handler was met in it yet.
    pub fn begin(&mut self) {
        self.all.iter_mut().for_each(|it| it.is_met = false);
    }

    /// Ends a cycle, and removes the handlers that it decided about.
    pub fn end(&mut self, now: Duration) {
        self.all.retain(|it| it.is_met || (it.is_sticky() && it.rests(now)));
    }

    /// Returns whether the filters of a handler must not be called yet. Those of an edited handler may be called at once.
    pub fn rests(&mut self, handler: &Handler, now: Duration) -> bool {
        let Some(entry) = self.of(handler).filter(|it| it.rests(now)) else { return false };
        entry.is_met = true;
        true
    }

    /// Records that a filter of a handler has failed after `took`. `delays` are the pauses after unexpected errors; the last one
    /// repeats.
    pub fn failed(
        &mut self,
        handler: &Handler,
        took: Duration,
        delays: &[Duration],
        now: Duration,
    ) -> FilterFailure {
        let before = self.of(handler).map_or(0, |it| it.failures);
        let category = handler.kind.category();
        let long = took.saturating_mul(REST);
        let pause = if category == Category::Watching {
            (took >= LONG).then_some(long)
        } else {
            delays.get(before).or(delays.last()).map(|it| long.max(*it))
        };
        self.note(handler, before + 1, (pause.map(|it| now.saturating_add(it)), took >= LONG));
        FilterFailure { attempt: before + 1, pause }
    }

    /// Pauses a handler: it must not be called until the pause is over.
    pub fn rest(&mut self, handler: &Handler, pause: Duration, now: Duration) {
        self.note(handler, 1, (Some(now.saturating_add(pause)), true));
    }

    /// Returns the pause until a filter of the first undecided handler can be called again. Event handlers wait for the next event.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        let waiting = self.all.iter().filter(|it| it.category != Category::Watching);
        waiting.filter_map(|it| it.until).map(|it| it.saturating_sub(now)).min()
    }

    /// Returns the ids of the index handlers whose filters are due to be called again.
    pub fn unindexed(&self, now: Duration) -> BTreeSet<Arc<str>> {
        let indexing = self.all.iter().filter(|it| it.category == Category::Indexing);
        let due = indexing.filter(|it| it.until.is_some() && !it.rests(now));
        due.map(|it| Arc::clone(it.mark.id())).collect_set()
    }

    /// Returns whether there are no undecided handlers and no change that was finished without them.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.settled.is_none()
    }

    /// Records that all handlers except the undecided ones have finished a change.
    pub fn settle(&mut self, change: &Change) {
        self.settled = Some(Arc::clone(&change.new));
    }

    /// Records that no change waits for undecided handlers any more.
    pub fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Returns the essence that the other handlers have seen, if all of them have finished a change and the object has changed
    /// again since then.
    pub fn overtaken(&self, change: &Change) -> Option<&Arc<Value>> {
        let is_ending = matches!(change.reason, Reason::Delete | Reason::Free | Reason::Gone);
        let settled = self.settled.as_ref().filter(|_| !is_ending)?;
        // If it is stored as handled, the current change begins there anyway.
        (*settled != change.new && change.old.as_ref() != Some(settled)).then_some(settled)
    }

    /// Ends the pauses of filters if the object has changed again, because they may succeed now; not those of slow filters.
    pub fn retry_if_overtaken(&mut self, change: &Change) {
        if self.overtaken(change).is_some() {
            let changing = self.all.iter_mut().filter(|it| it.category == Category::Changing);
            changing.filter(|it| !it.is_slow).for_each(|it| it.until = None);
        }
    }

    fn note(
        &mut self,
        handler: &Handler,
        failures: usize,
        (until, is_slow): (Option<Duration>, bool),
    ) {
        self.all.retain(|it| !it.mark.is_namesake_of(handler));
        let (mark, category) = (handler.mark(), handler.kind.category());
        self.all.push(UndecidedEntry { mark, category, failures, until, is_slow, is_met: true });
    }

    fn of(&mut self, handler: &Handler) -> Option<&mut UndecidedEntry> {
        self.all.iter_mut().find(|it| it.mark.is_of(handler))
    }
}

impl UndecidedEntry {
    fn rests(&self, now: Duration) -> bool {
        self.until.is_some_and(|it| now < it)
    }

    /// Returns whether the entry is kept until its pause is over: not every cycle concerns these handlers.
    fn is_sticky(&self) -> bool {
        matches!(self.category, Category::Watching | Category::Indexing)
    }
}
