//! What a cycle records about a change. It is computed again after the server has rejected what a handler wanted.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    attempts::{Attempt, Attempts},
    ids,
};
use crate::handling::run;
use crate::logic::{
    cause::Change,
    corrupt::CorruptState,
    diffbase,
    failed::Failed,
    handler::Handler,
    outcome::{self, Effort, Ended, LogLine, Outcome, Raised, RaisedKind},
    reason::Reason,
    settle::{self, Settlement},
    state::State,
};
use crate::reactor::{generation::StreamContext, memory::Memory};

/// A change whose handlers have been called.
#[derive(Debug)]
pub(in crate::reactor) struct Settling {
    pub(super) change: Change,
    /// The records after the calls.
    pub(super) state: State,
    /// The handlers that want the change.
    pub(super) selected: Vec<Arc<Handler>>,
    /// Those of them that were called.
    pub(super) called: Vec<Arc<Handler>>,
    /// All records are of another change, and go first.
    pub(super) is_left_over: bool,
    /// The change does not end with its handlers, see `Changing`.
    pub(super) is_held: bool,
    /// A change was handled to its end before this one.
    pub(super) handled_once: bool,
}

impl Settling {
    /// Of a change that the object has overtaken: its handlers have finished what they have seen of it, and see later changes
    /// from there.
    ///
    /// # Errors
    /// When the state on the object cannot be read.
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
        let is_stored = diffbase::is_stored(&persistence.diffbase_storage, body, &seen);
        let old = is_stored.then(|| Arc::clone(&seen));
        let diff = Arc::default();
        Ok(Settling {
            change: Change { old, new: seen, diff, ..change.clone() },
            state,
            selected: Vec::new(),
            called: Vec::new(),
            is_left_over: true,
            is_held: false,
            handled_once: true,
        })
    }

    /// Whether any record is of a handler that has not finished.
    pub(in crate::reactor) fn has_unfinished(&self) -> bool {
        self.state.counts().left > 0
    }

    /// Where the change stands.
    pub(in crate::reactor) fn settlement(&self, now: Timestamp) -> Settlement {
        settle::change(&self.state, &self.change, self.selected.is_empty(), now)
    }

    /// Returns what is to be written on the object: the records, or what remains of them and the essence when all have ended.
    pub(in crate::reactor) fn own(
        &self,
        serving: &StreamContext,
        body: &Value,
        attempts: &mut Attempts,
    ) -> Map<String, Value> {
        let persistence = &serving.settings.persistence;
        let storage = &persistence.progress_storage;
        let owned = &serving.handlers.changing;
        let mut own = Map::new();
        if self.is_left_over {
            self.state.purge(storage, body, &mut own, ids(owned));
        }
        if !self.selected.is_empty() {
            attempts.children().store(storage, body, &mut own);
            self.state.store(storage, body, &mut own);
        }
        if self.is_done(serving.clock.now()) {
            if !self.selected.is_empty() {
                self.state.purge(storage, body, &mut own, ids(owned));
            }
            settle::remember(persistence, body, &self.change, &mut own);
        }
        self.note_failed(serving, body, &mut own);
        own
    }

    /// Stores which handlers have failed permanently. Not needed for a deletion, as the object goes.
    fn note_failed(&self, serving: &StreamContext, body: &Value, own: &mut Map<String, Value>) {
        let reason = self.change.reason;
        if self.called.is_empty() || reason == Reason::Delete {
            return;
        }
        let persistence = &serving.settings.persistence;
        let before = Failed::of(persistence, body);
        let mut failed = before.clone();
        let handlers = (&*self.called, &*serving.handlers.changing);
        failed.note(&self.state, reason, handlers, serving.clock.now());
        if failed != before {
            failed.store(persistence, body, own);
        }
    }

    /// Whether the change needs nothing more.
    pub(in crate::reactor) fn is_done(&self, now: Timestamp) -> bool {
        self.settlement(now).done && !self.is_held
    }

    /// Notes for the next cycles what has come of it.
    pub(in crate::reactor) fn note(&self, memory: &mut Memory, now: Timestamp) {
        memory.handled_once = self.handled_once || self.is_done(now);
        let mut waiting = memory.waiting.take().unwrap_or_default();
        if !self.selected.is_empty() {
            waiting.note(&self.state, &self.selected, &self.called, now);
            memory.waiting = Some(waiting).filter(|it| !it.is_empty());
        }
    }

    /// The attempt has failed after all, and with it those that wait for it. Returns the line that tells of it.
    pub(in crate::reactor) fn fail(
        &mut self,
        attempt: &Attempt,
        raised: Raised,
        serving: &StreamContext,
        attempts: &mut Attempts,
    ) -> LogLine {
        let now = serving.clock.now();
        let effort = Effort { retries: attempt.retries, runtime: run::since(attempt.started, now) };
        let backoff = serving.settings.execution.default_backoff;
        let ended = Ended::Raised(raised);
        let (outcome, line) = outcome::after(&attempt.handler, ended, effort, backoff);
        let mut delay = (!outcome.last).then(|| outcome.delay.unwrap_or_default());
        self.retract(attempt, &outcome, now, attempts);
        let mut parent = attempt.parent;
        while let Some(above) = parent.and_then(|it| attempts.get(it)) {
            let Some(wait) = delay else { break };
            delay = self.reopen(&above, wait, now, attempts);
            parent = above.parent;
        }
        line
    }

    /// A handler whose sub-handlers are not finished after all is not finished either. Returns when it goes on.
    fn reopen(
        &mut self,
        attempt: &Attempt,
        delay: Duration,
        now: Timestamp,
        attempts: &mut Attempts,
    ) -> Option<Duration> {
        let id = &attempt.handler.id;
        let record = self.state.record(id).or_else(|| attempts.children().record(id))?;
        // One that failed by itself never comes back, and one that waits comes early enough.
        if record.failure || !record.success && record.delay(now) <= delay {
            return None;
        }
        let raised = Raised {
            kind: RaisedKind::Unfinished(Some(delay)),
            message: String::new(),
            trace: None,
        };
        let ended = Ended::Raised(raised);
        let (outcome, _) = outcome::after(&attempt.handler, ended, Effort::default(), delay);
        self.retract(attempt, &outcome, now, attempts);
        Some(delay)
    }

    /// Puts this outcome in the place of the one that the attempt had.
    fn retract(
        &mut self,
        attempt: &Attempt,
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

    /// Forgets attempts of handlers that were edited or removed since: the next cycle decides about them, and about the end of the
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

    /// Cuts the messages in all records to so many bytes.
    pub(in crate::reactor) fn shorten(&mut self, bytes: usize, attempts: &mut Attempts) {
        self.state.shorten_messages(bytes);
        attempts.children().shorten_messages(bytes);
    }
}
