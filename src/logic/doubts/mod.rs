//! The handlers of one object about which nothing can be decided for the moment.
//!
//! A filter that fails costs only its own handler. Until the filter is asked again, nobody knows whether the handler wants the
//! object: it is not called, and neither the finalizer nor the end of a change is decided without it. The pauses are those of
//! other unexpected errors, but at least ten times as long as the filter has taken. Times are durations since any fixed moment.
//!
//! Before: `handling/asking.rs`, which asks the filters. After: `reactor/undecided.rs`, which waits.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{
    cause::Change,
    corrupt::CorruptState,
    diffbase,
    handler::{Category, Handler, Mark},
    reason::Reason,
    state::State,
};
use crate::settings::Persistence;

/// What takes long rests this many times as long: so a handler takes at most about a tenth of the time of its object.
pub const REST: u32 = 10;

/// A filter of handlers that see each event does not rest if it has taken less than this.
const LONG: Duration = Duration::from_secs(1);

/// The undecided handlers of one object, and what was handled without them.
#[derive(Debug, Default)]
pub struct Doubts {
    all: Vec<Doubt>,
    settled: Option<Settled>,
}

#[derive(Debug)]
struct Doubt {
    mark: Mark,
    category: Category,
    /// Failed attempts in a row.
    failures: usize,
    /// Not before; `None` if it is not asked again without another event.
    until: Option<Duration>,
    /// The present cycle had to do without an answer.
    is_met: bool,
}

/// A change that all handlers have finished but those that are undecided.
#[derive(Debug)]
struct Settled {
    /// What they have seen.
    essence: Arc<Value>,
    /// The undecided ones, as log lines call them.
    missing: Vec<String>,
}

/// A filter has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How often in a row, this time included.
    pub attempt: usize,
    /// The pause before it is asked again; `None` if only another event brings it back.
    pub pause: Option<Duration>,
}

impl Doubts {
    /// Begins a cycle.
    pub fn begin(&mut self) {
        self.all.iter_mut().for_each(|it| it.is_met = false);
    }

    /// Ends a cycle: handlers that the cycle could decide about are no longer in doubt.
    pub fn end(&mut self, now: Duration) {
        self.all.retain(|it| it.is_met || (it.is_sticky() && it.rests(now)));
    }

    /// Whether nothing may be asked of a handler yet. A handler that was edited may be asked at once.
    pub fn rests(&mut self, handler: &Handler, now: Duration) -> bool {
        let Some(doubt) = self.of(handler).filter(|it| it.rests(now)) else { return false };
        doubt.is_met = true;
        true
    }

    /// Notes that a filter of a handler has failed after so much time. `delays` are the pauses after unexpected errors; the
    /// last one repeats.
    pub fn failed(
        &mut self,
        handler: &Handler,
        took: Duration,
        delays: &[Duration],
        now: Duration,
    ) -> Failed {
        let before = self.of(handler).map_or(0, |it| it.failures);
        let category = handler.kind.category();
        let long = took.saturating_mul(REST);
        let pause = if category == Category::Watching {
            (took >= LONG).then_some(long)
        } else {
            delays.get(before).or(delays.last()).map(|it| long.max(*it))
        };
        self.note(handler, before + 1, pause.map(|it| now.saturating_add(it)));
        Failed { attempt: before + 1, pause }
    }

    /// Notes that a handler must not be called for a while.
    pub fn rest(&mut self, handler: &Handler, pause: Duration, now: Duration) {
        self.note(handler, 1, Some(now.saturating_add(pause)));
    }

    /// The pause until the first undecided handler can be asked again. Those of events wait for the next event.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        let waiting = self.all.iter().filter(|it| it.category != Category::Watching);
        waiting.filter_map(|it| it.until).map(|it| it.saturating_sub(now)).min()
    }

    /// The ids of the index handlers that are to be asked again now.
    pub fn unindexed(&self, now: Duration) -> BTreeSet<Arc<str>> {
        let indexing = self.all.iter().filter(|it| it.category == Category::Indexing);
        let due = indexing.filter(|it| it.until.is_some() && !it.rests(now));
        due.map(|it| Arc::clone(it.mark.id())).collect()
    }

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.settled.is_none()
    }

    /// Notes that all handlers have finished a change but these.
    pub fn settle(&mut self, change: &Change, missing: &[Arc<Handler>]) {
        let missing = missing.iter().map(ToString::to_string).collect();
        self.settled = Some(Settled { essence: Arc::clone(&change.new), missing });
    }

    /// No change waits for undecided handlers any more.
    pub fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Completes a change that only undecided handlers have not finished, when the object has changed once more: the others
    /// are to see the new change from where they are. Returns what goes into the patch, and the handlers that have missed it.
    ///
    /// # Errors
    /// When the state on the object cannot be read.
    pub fn overtaken<'a>(
        &mut self,
        persistence: &Persistence,
        (body, change): (&Value, &Change),
        owned: impl Iterator<Item = &'a Arc<str>> + Clone,
        now: jiff::Timestamp,
    ) -> Result<Option<(Map<String, Value>, Vec<String>)>, CorruptState> {
        let is_ending = matches!(change.reason, Reason::Delete | Reason::Free | Reason::Gone);
        let is_other = |it: &mut Settled| is_ending || it.essence != change.new;
        let Some(settled) = self.settled.take_if(is_other).filter(|_| !is_ending) else {
            return Ok(None);
        };
        let storage = &persistence.progress_storage;
        let mut patch = Map::new();
        State::load(storage, body, owned.clone(), now)?.purge(storage, body, &mut patch, owned);
        if change.old.as_ref() != Some(&settled.essence) {
            diffbase::store(&persistence.diffbase_storage, body, &settled.essence, &mut patch);
        }
        Ok(Some((patch, settled.missing)))
    }

    fn note(&mut self, handler: &Handler, failures: usize, until: Option<Duration>) {
        self.all.retain(|it| !it.mark.is_namesake_of(handler));
        let (mark, category) = (handler.mark(), handler.kind.category());
        self.all.push(Doubt { mark, category, failures, until, is_met: true });
    }

    fn of(&mut self, handler: &Handler) -> Option<&mut Doubt> {
        self.all.iter_mut().find(|it| it.mark.is_of(handler))
    }
}

impl Doubt {
    fn rests(&self, now: Duration) -> bool {
        self.until.is_some_and(|it| now < it)
    }

    /// Not every cycle comes to these handlers.
    fn is_sticky(&self) -> bool {
        matches!(self.category, Category::Watching | Category::Indexing)
    }
}
