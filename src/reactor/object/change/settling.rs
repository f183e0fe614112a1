//! The records of a change. They are computed again after the server has rejected a handler's request.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    attempts::{Attempts, HandlerAttempt},
    ids,
};
use crate::call::Logger;
use crate::handling::{failing::Conclusion, run, time_slice::TimeSlice};
use crate::logic::{
    change::{cause::Change, failed::FailedHandlers, settle, state::State},
    handlers::{
        handler::Handler,
        outcome::{self, CallEnd, Effort, Outcome, Raised, RaisedKind},
        progress,
    },
    object::{corrupt::CorruptState, diffbase, hidden, reason::Reason},
};
use crate::reactor::object::{context::StreamContext, memory::ChangeMemory};
use crate::settings::ProgressStorage;

/// The records that belong to another change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOver {
    /// No record belongs to another change.
    None,
    /// Those in the state.
    Loaded,
    /// All of the resource's handlers.
    All,
}

/// A change whose handlers have been called.
#[derive(Debug)]
pub(in crate::reactor) struct Settling {
    pub(super) change: Change,
    /// The records after the calls.
    pub(super) state: State,
    /// The handlers whose filters match the change.
    pub(super) selected: Vec<Arc<Handler>>,
    /// The handlers among these that were called.
    pub(super) called: Vec<Arc<Handler>>,
    /// The records that belong to another change, and must be purged first.
    pub(super) left_over: LeftOver,
    /// The change does not end with its handlers, see `Changing`.
    pub(super) is_held: bool,
    /// A change was handled completely before this one.
    pub(super) handled_once: bool,
}

impl Settling {
    /// Returns the state of a change that is older than the present object: its handlers have finished with the essence that they have
    /// seen, and later changes start from there.
    ///
    /// # Errors
    /// If the state on the object cannot be read.
    pub(in crate::reactor) fn of_overtaken(
        change: &Change,
        seen: Arc<Value>,
        serving: &StreamContext,
        body: &Value,
    ) -> Result<Self, CorruptState> {
        let persistence = &serving.settings.persistence;
        let owned = &serving.handlers.changing;
        let now = serving.clock.now();
        let state = State::load(&persistence.progress_storage, body, ids(owned), now)?;
        let masked = hidden::masked(persistence, body, &seen);
        let essence = masked.as_ref().unwrap_or(&seen);
        let is_stored = diffbase::is_stored(&persistence.diffbase_storage, body, essence);
        let old = is_stored.then(|| Arc::clone(&seen));
        Ok(Settling {
            change: Change { old, new: seen, diff: Arc::default(), ..change.clone() },
            state,
            selected: Vec::new(),
            called: Vec::new(),
            left_over: LeftOver::All,
            is_held: false,
            handled_once: true,
        })
    }

    /// Returns whether any record belongs to an unfinished handler.
    pub(in crate::reactor) fn has_unfinished(&self) -> bool {
        self.state.counts().left > 0
    }

    /// Returns whether every selected handler has ended, or none was selected.
    pub(super) fn has_ended(&self) -> bool {
        self.selected.is_empty() || self.state.done()
    }

    /// Returns the pauses until the unfinished handlers are due.
    pub(in crate::reactor) fn delays(&self, now: Timestamp) -> Vec<Duration> {
        if self.selected.is_empty() { Vec::new() } else { self.state.delays(now) }
    }

    /// Returns the fields to write to the object: the records, or, when all handlers have finished, their removal and the essence.
    ///
    /// A handler can have a thousand sub-handlers, so that other tasks get their turn in between.
    pub(in crate::reactor) async fn own(
        &self,
        serving: &StreamContext,
        body: &Value,
        attempts: &mut Attempts,
    ) -> Map<String, Value> {
        let (persistence, owned) = (&serving.settings.persistence, &serving.handlers.changing);
        let object = (&persistence.progress_storage, body);
        let (mut own, mut slice) = (Map::new(), TimeSlice::start());
        let left_over = match self.left_over {
            LeftOver::None => BTreeSet::new(),
            LeftOver::Loaded => self.state.known([]),
            LeftOver::All => self.state.others(ids(owned)),
        };
        purge(left_over, object, &mut own, &mut slice).await;
        let is_done = self.is_done();
        if !self.selected.is_empty() {
            let purged = if is_done { self.state.known(ids(owned)) } else { BTreeSet::new() };
            for (id, entry) in attempts.children().entries().chain(self.state.entries()) {
                entry.store(id, object, &purged, &mut own);
                slice.yield_if_over().await;
            }
            purge(purged, object, &mut own, &mut slice).await;
        }
        if is_done {
            settle::remember(persistence, body, &self.change, &mut own);
        }
        self.note_failed(serving, body, &mut own);
        own
    }

    /// Stores which handlers have failed permanently. Not necessary for a deletion, which removes the object.
    fn note_failed(&self, serving: &StreamContext, body: &Value, own: &mut Map<String, Value>) {
        let reason = self.change.reason;
        if self.called.is_empty() || reason == Reason::Delete {
            return;
        }
        let persistence = &serving.settings.persistence;
        let before = FailedHandlers::of(persistence, body);
        let mut failed = before.clone();
        let handlers = (&*self.called, &*serving.handlers.changing);
        failed.note(&self.state, reason, handlers, serving.clock.now());
        if failed != before {
            failed.store(persistence, body, own);
        }
    }

    /// Returns whether the change is complete.
    pub(in crate::reactor) fn is_done(&self) -> bool {
        self.has_ended() && !self.is_held
    }

    /// Returns the essence that was handled, if the change is complete and no handler has failed.
    pub(in crate::reactor) fn handled(&self) -> Option<&Value> {
        (self.is_done() && self.state.counts().failed == 0).then_some(&*self.change.new)
    }

    /// Stores the result in the memory, for the next cycles.
    pub(in crate::reactor) fn note(&self, memory: &mut ChangeMemory<'_>, now: Timestamp) {
        *memory.handled_once = self.handled_once || self.is_done();
        let mut waiting = memory.waiting.take().unwrap_or_default();
        if !self.selected.is_empty() {
            waiting.note(&self.state, &self.selected, &self.called, now);
            *memory.waiting = Some(waiting).filter(|it| !it.is_empty());
        }
    }

    /// Fails the attempt afterwards, and with it the parents that wait for it. Logs the failure to `logger`.
    pub(in crate::reactor) fn fail(
        &mut self,
        attempt: &HandlerAttempt,
        raised: Raised,
        (serving, logger): (&StreamContext, &Logger),
        attempts: &mut Attempts,
    ) {
        let now = serving.clock.now();
        let effort = Effort { retries: attempt.retries, runtime: run::since(attempt.started, now) };
        let backoff = serving.settings.execution.default_backoff;
        let trace = raised.trace.clone();
        let ended = CallEnd::Raised(raised);
        let (outcome, line) = outcome::after(&attempt.handler, ended, effort, backoff);
        let (handler, trace) = (&*attempt.handler, trace.as_deref());
        let (before, ended_as, line) = (effort, &outcome, &line);
        let resource = Some(&serving.resource);
        let ended = Conclusion { handler, before, outcome: ended_as, line, trace, resource };
        serving.runner().reporter().report(ended, logger);
        let mut delay = (!outcome.last).then(|| outcome.delay.unwrap_or_default());
        self.retract(attempt, &outcome, now, attempts);
        let mut parent = attempt.parent;
        while let Some(above) = parent.and_then(|it| attempts.get(it)) {
            let Some(wait) = delay else { break };
            delay = self.reopen(&above, wait, now, attempts);
            parent = above.parent;
        }
    }

    /// Reopens a parent whose sub-handlers have not finished after all. Returns the delay until it continues.
    fn reopen(
        &mut self,
        attempt: &HandlerAttempt,
        delay: Duration,
        now: Timestamp,
        attempts: &mut Attempts,
    ) -> Option<Duration> {
        let id = &attempt.handler.id;
        let record = self.state.record(id).or_else(|| attempts.children().record(id))?;
        // A parent that has failed by itself never runs again, and one that waits runs early enough.
        if record.failure || !record.success && record.delay(now) <= delay {
            return None;
        }
        let raised = Raised {
            kind: RaisedKind::Unfinished(Some(delay)),
            message: String::new(),
            trace: None,
        };
        let ended = CallEnd::Raised(raised);
        let (outcome, _) = outcome::after(&attempt.handler, ended, Effort::default(), delay);
        self.retract(attempt, &outcome, now, attempts);
        Some(delay)
    }

    /// Replaces the outcome of the attempt.
    fn retract(
        &mut self,
        attempt: &HandlerAttempt,
        outcome: &Outcome,
        now: Timestamp,
        attempts: &mut Attempts,
    ) {
        let id = &attempt.handler.id;
        let Some(before) = &attempt.before else { return };
        for state in [&mut self.state, attempts.children()] {
            let Some(after) = state.record(id) else { continue };
            let outcome = Outcome { subrefs: after.subrefs.clone(), ..outcome.clone() };
            state.set(id, before.transition(&outcome, now));
        }
    }

    /// Drops attempts of handlers that were edited or removed since: the next cycle decides about them, and about the end of the
    /// change.
    pub(in crate::reactor) fn forget(
        &mut self,
        replaced: &BTreeSet<usize>,
        handlers: &[Arc<Handler>],
        attempts: &mut Attempts,
    ) {
        self.is_held = true;
        for number in replaced {
            let Some(attempt) = attempts.get(*number) else { continue };
            let id = &attempt.handler.id;
            let is_edited = attempt.parent.is_some() || handlers.iter().any(|it| it.id == *id);
            for state in [&mut self.state, attempts.children()] {
                match attempt.before.clone().filter(|_| is_edited) {
                    Some(before) => state.set(id, before),
                    None => state.remove(id),
                }
            }
            self.called.retain(|it| it.id != *id);
        }
    }

    /// Cuts the messages in all records to this many bytes.
    pub(in crate::reactor) fn shorten(&mut self, bytes: usize, attempts: &mut Attempts) {
        self.state.shorten_messages(bytes);
        attempts.children().shorten_messages(bytes);
    }
}

/// Removes the records of these handlers.
async fn purge(
    ids: BTreeSet<&str>,
    (storage, body): (&ProgressStorage, &Value),
    own: &mut Map<String, Value>,
    slice: &mut TimeSlice,
) {
    for id in ids {
        progress::purge(storage, body, id, own);
        slice.yield_if_over().await;
    }
}
