//! One pass over one event: recall → decide → handle → settle → patch.
//!
//! The only place that joins decisions with the world. Before: `worker.rs`. After: `change/`, then
//! `conclusion.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::future;
use tokio::time::{self, Instant};

use super::{
    background::{Attended, Attending},
    calls::{Calls, Whom},
    change::{Changing, Scene, kwargs},
    conclusion::{Conclusion, Left, Next, Unsent},
    error::CycleError,
    expectation::Expectation,
    memory::Memory,
    place::Place,
    queue::{Event, Queue},
    serving::Serving,
    undecided::{Patient, Wait},
};
use crate::features::indexes::Indexer;
use crate::handling::run::Try;
use crate::logic::{
    cause::{self, Change},
    claim::Claim,
    filters::{Answers, Subject},
    function::ScriptId,
    handler::Handler,
    indexing::Owner,
    object::Object,
    outcome::LogLevel,
    patch::{Patch, Transformation},
    plan::{self, Hold},
    reason::{EventType, Reason},
    selection::{self, Certainty},
    state,
};
use crate::ports::{
    Cause, Emptied, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, SharedPatch,
};

/// After this time, indexing takes no place from other objects.
const PROMPT: Duration = Duration::from_secs(1);

/// One pass over one event.
pub(super) struct Cycle<'a> {
    /// The resource and its handlers.
    pub(super) serving: &'a Serving,
    /// Where newer events wait.
    pub(super) queue: &'a Queue,
    /// The worker's place, for waits that concern others.
    pub(super) place: &'a Place,
    /// The object's memory.
    pub(super) memory: &'a mut Memory,
    /// The event.
    pub(super) event: Event,
    /// For the operator's own lines.
    pub(super) logger: &'a Logger,
    /// Our own patch that has not come back yet.
    pub(super) expected: Option<&'a Expectation>,
    /// Whom the event still concerns, beside handlers of changes, daemons and timers.
    pub(super) calls: &'a mut Calls,
}

/// How the wait for the indexes has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Opening {
    /// Handlers may be called, but not yet those of these scripts.
    Open(BTreeSet<ScriptId>),
    /// The stream ends.
    Ended,
    /// There are other handlers now.
    Replaced,
}

/// What the handlers of changes have to do with an event.
struct Detected {
    /// `None` if none of them certainly cares for the object.
    change: Option<Change>,
    /// Whether any of them needs to hold it.
    required: Certainty,
    /// What their filters have answered so far.
    answers: Answers,
}

/// What became of a change.
struct Handled {
    /// Pauses until handlers can go on.
    pauses: Vec<Duration>,
    /// It is known of all handlers whether they want it.
    is_complete: bool,
}

impl Cycle<'_> {
    /// Runs the pass. `patched` is the object as our last request has changed it, also when a later step fails.
    pub(super) async fn run(
        mut self,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Next, CycleError> {
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let own = self.memory.unsent.take_if(|it| is_gone || it.left.is_some()).map(|it| *it);
        if let Some(Unsent { patch, left: Some(left) }) = own.filter(|_| !is_gone) {
            return self.conclusion(patched).run(patch, left).await;
        }
        let patch = SharedPatch::default();
        // Also when the cycle fails.
        let _emptied = Emptied(Arc::clone(&patch));
        let memo = self.memory.memo(&self.serving.memo);
        let mut patient = Patient::new(self.memory);
        self.index(&memo, &patient).await;
        self.calls.indexed();
        self.queue.show(self.calls.turn);
        if self.event.for_indexes {
            Patient::end(self.memory, self.serving.uptime());
            return Ok(self.wait(&patient).await);
        }
        let start = Instant::now();
        match self.opening().await {
            Opening::Open(waiting) if !self.is_paused() => patient.wait_for(waiting, start),
            Opening::Open(_) | Opening::Ended => return Ok(Next::Event),
            Opening::Replaced => return Ok(Next::Anew),
        }
        self.watch(&patch, &memo, &patient).await;
        if let Some(unsent) = self.memory.unsent.take()
            && self.conclusion(patched).catch_up(unsent.patch).await?
        {
            // What handlers of this event have changed goes as well.
            let patch = std::mem::take(&mut *patch.lock());
            self.conclusion(patched).run(patch, Left::default()).await?;
            return Ok(Next::Coming);
        }
        let attending = Attending {
            serving: self.serving,
            memory: &mut *self.memory,
            event_type: self.event.event_type,
            object: &self.event.object,
            memo: &memo,
            logger: self.logger,
            patient: &patient,
        };
        let attended = attending.run().await;
        let left = self.change((&patch, &memo), attended, &patient).await?;
        if is_gone {
            return Ok(Next::Event);
        }
        let patch = std::mem::take(&mut *patch.lock());
        self.conclude(patch, left, (&patient, patched)).await
    }

    /// Sends the patch, and waits for what is due first: handlers that were delayed, or those that nothing could be decided about.
    async fn conclude(
        mut self,
        patch: Patch,
        left: Left,
        (patient, patched): (&Patient, &mut Option<Arc<Object>>),
    ) -> Result<Next, CycleError> {
        Patient::end(self.memory, self.serving.uptime());
        if patch.is_empty() && self.waits(patient).comes_before(&left.delays) {
            return Ok(self.wait(patient).await);
        }
        match self.conclusion(patched).run(patch, left).await? {
            // Nothing else brings the object back.
            Next::Event => Ok(self.wait(patient).await),
            next @ (Next::Coming | Next::Again | Next::Anew) => Ok(next),
        }
    }

    fn waits<'c>(&'c self, patient: &'c Patient) -> Wait<'c> {
        let Cycle { serving, queue, place, memory, .. } = self;
        Wait { serving, queue, place, memory, patient }
    }

    async fn wait(&self, patient: &Patient) -> Next {
        self.waits(patient).run().await
    }

    fn conclusion<'c>(&'c mut self, patched: &'c mut Option<Arc<Object>>) -> Conclusion<'c> {
        Conclusion {
            serving: self.serving,
            queue: self.queue,
            place: self.place,
            memory: self.memory,
            object: &self.event.object,
            logger: self.logger,
            patched,
        }
    }

    /// Whether the event is not for us. The list after the pause brings the object back; only its end is told but once.
    fn is_paused(&self) -> bool {
        self.event.event_type != Some(EventType::Deleted) && self.serving.pauses.is_paused()
    }

    /// Brings the tables up to date, before any handler looks at them.
    async fn index(&mut self, memo: &Memo, patient: &Patient) {
        let (serving, logger) = (self.serving, self.logger);
        let doubts = self.memory.doubts.as_ref();
        let again = doubts.map(|it| it.unindexed(serving.uptime())).unwrap_or_default();
        if serving.handlers.indexing.is_empty()
            || (self.calls.indexing.is_nobody() && again.is_empty())
        {
            return;
        }
        let only = match &self.calls.indexing {
            Whom::All => None,
            Whom::Only(ids) => Some(ids | &again),
        };
        let header = self.event.object.header();
        if self.event.event_type == Some(EventType::Deleted) {
            serving.facilities.indexes.remove(&Owner::of(header));
        } else {
            let mut failures = self.memory.unindexed.take().unwrap_or_default();
            let news = self.event.news.as_ref().map(|it| &it.indexes);
            // What failed before was another function.
            news.into_iter().chain(&only).flatten().for_each(|id| failures.forget(id));
            let indexer = Indexer {
                runner: serving.runner(),
                handlers: &serving.handlers.indexing,
                only: only.as_ref(),
                cause: self.cause(&SharedPatch::default(), ObjectDetail::Index),
                memo,
                logger,
            };
            let patience = patient.patience(serving, &mut self.memory.doubts);
            {
                let mut indexing = pin!(indexer.run(&mut failures, patience));
                // A function that waits takes no place from others.
                if time::timeout(PROMPT, &mut indexing).await.is_err() {
                    self.place.without(indexing).await;
                }
            }
            self.memory.unindexed = Some(failures).filter(|it| !it.is_empty());
        }
        serving.hold.indexed(header);
    }

    /// Waits until the tables are complete that handlers use.
    async fn opening(&self) -> Opening {
        let Serving { replaced, .. } = self.serving;
        if self.serving.is_open() {
            return Opening::Open(BTreeSet::new());
        }
        let wait = async {
            tokio::select! {
                biased; // both at once: nothing new begins at the end, and nothing old after a reload
                () = self.queue.ended() => Opening::Ended,
                () = replaced.cancelled() => Opening::Replaced,
                waiting = self.serving.opening() => Opening::Open(waiting),
            }
        };
        // Others may need the place to complete the tables.
        self.place.without(wait).await
    }

    /// Calls the handlers of raw events, once each. Those of different scripts do not wait for each other.
    async fn watch(&mut self, patch: &SharedPatch, memo: &Memo, patient: &Patient) {
        let (serving, logger) = (self.serving, self.logger);
        let all = &serving.handlers.watching;
        let (handlers, event_type) = match self.calls.take_watching() {
            Whom::All => (all.clone(), self.event.event_type),
            // Nothing has happened: they see the object as at a start.
            Whom::Only(ids) => {
                let is_new = |it: &&Arc<Handler>| ids.contains(&it.id);
                (all.iter().filter(is_new).cloned().collect(), None)
            }
        };
        if handlers.is_empty() {
            return;
        }
        let cause = self.cause(patch, ObjectDetail::Watch(event_type));
        let asker = serving.asker(&cause, memo, logger);
        let subject = Subject { object: &self.event.object, change: None };
        let patience = patient.patience(serving, &mut self.memory.doubts);
        let decision = |known: &Answers| selection::watching(&handlers, &subject, known);
        let sorted =
            asker.decide_without_failures(&mut patient.answers(), patience, decision).await;
        let mut by_script = BTreeMap::<ScriptId, Vec<Arc<Handler>>>::new();
        for handler in sorted.selected {
            let doubts = self.memory.doubts.as_mut();
            if !doubts.is_some_and(|it| it.rests(&handler, serving.uptime())) {
                by_script.entry(handler.function.script).or_default().push(handler);
            }
        }
        let calls = by_script.into_values().map(|handlers| {
            let cause = &cause;
            call_in_turn(serving, handlers, (cause, memo, logger))
        });
        let rests = future::join_all(calls).await;
        for (handler, rest) in rests.into_iter().flatten() {
            let doubts = self.memory.doubts.get_or_insert_default();
            doubts.rest(&handler, rest, serving.uptime());
        }
    }

    /// Everything about changes: what happened, whether we hold the object, the handlers, the release.
    async fn change(
        &mut self,
        (patch, memo): (&SharedPatch, &Memo),
        attended: Attended,
        patient: &Patient,
    ) -> Result<Left, CycleError> {
        let object = Arc::clone(&self.event.object);
        let persistence = &self.serving.settings.persistence;
        let detected = self.detect(&object, (patch, memo), patient).await?;
        let Detected { change, required: needed, mut answers } = detected;
        let ongoing = object.header().deletion_timestamp.is_some();
        let has_finalizer = |it: &Object| it.header().finalizers.contains(&persistence.finalizer);
        // The event may be older than our own request which added it.
        let blocked =
            has_finalizer(&object) || self.expected.is_some_and(|it| has_finalizer(&it.object));
        let Attended { required, mut delays, is_awaited } = attended;
        let required = needed.or(required);
        let blocked = self.claim(required, blocked);
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let hold = match required {
            // Whatever is decided could be wrong.
            Certainty::Unknown => Hold::Keep,
            Certainty::Yes | Certainty::No => {
                plan::hold(required == Certainty::Yes, blocked, ongoing || is_gone)
            }
        };
        let change = change.filter(|_| hold == Hold::Keep);
        self.hold(hold, patch);
        let is_consistent = match &change {
            Some(change) if change.reason != Reason::Gone => self.consistent(patch).await,
            Some(_) | None => true,
        };
        if !is_consistent {
            return Ok(Left { delays, looked_at: false, is_awaited });
        }
        let looked_at = change.is_some();
        let mut is_decided = needed != Certainty::Unknown;
        if let Some(change) = change {
            let is_held = ongoing && !delays.is_empty();
            let scope = (patch, memo, patient);
            let handled = self.handle(&change, scope, (&mut answers, is_held)).await?;
            let Some(Handled { pauses, is_complete }) = handled else {
                return Ok(Left { delays, looked_at, is_awaited });
            };
            is_decided &= is_complete;
            delays.extend(pauses);
        }
        if !is_gone && ongoing && blocked && delays.is_empty() && is_decided {
            self.logger
                .log(LogLevel::Debug, "Removing the finalizer, thus allowing the actual deletion.");
            patch
                .lock()
                .transformations
                .push(Transformation::AllowDeletion(persistence.finalizer.as_str().into()));
        }
        Ok(Left { delays, looked_at, is_awaited })
    }

    /// Handles a change, as far as it can be decided who wants it. `None`: something else comes first.
    async fn handle(
        &mut self,
        change: &Change,
        (patch, memo, patient): (&SharedPatch, &Memo, &Patient),
        (answers, is_held): (&mut Answers, bool),
    ) -> Result<Option<Handled>, CycleError> {
        let undecided = self.undecided(change, (patch, memo), patient, answers).await;
        if undecided.iter().any(|it| patient.waits(it)) {
            // It will see the change as it is then, and all others with it.
            return Ok(None);
        }
        let doubts = self.memory.doubts.as_ref();
        let mut is_overtaken = doubts.is_some_and(|it| it.is_overtaken(change));
        if is_overtaken && !undecided.is_empty() {
            if self.complete(&undecided, patch)? {
                return Ok(None);
            }
            is_overtaken = false;
        }
        let object = Arc::clone(&self.event.object);
        let scene = Scene {
            serving: self.serving,
            logger: &self.logger.with_kind(LoggerKind::Full),
            object: &object,
            patch,
            memo,
        };
        let is_held = is_held || !undecided.is_empty() || is_overtaken;
        let before = is_overtaken.then(|| patch.lock().merge.clone());
        let changing = Changing { scene, memory: &mut *self.memory, is_held };
        let pauses = changing.run(change, answers).await?;
        // What has just ended is recorded first.
        let is_recorded = before.is_some_and(|it| it == patch.lock().merge);
        if is_recorded && pauses.is_empty() {
            self.complete(&[], patch)?;
        } else if !is_overtaken {
            self.settle(change, &undecided, pauses.is_empty());
        }
        Ok(Some(Handled { pauses, is_complete: undecided.is_empty() }))
    }

    /// What happened, if any change handler cares for the object, and whether any of them needs to hold it.
    async fn detect(
        &mut self,
        object: &Arc<Object>,
        (patch, memo): (&SharedPatch, &Memo),
        patient: &Patient,
    ) -> Result<Detected, CycleError> {
        let (serving, logger) = (self.serving, self.logger);
        let mut answers = patient.answers();
        let handlers = &serving.handlers;
        if handlers.changing.is_empty() {
            return Ok(Detected { change: None, required: Certainty::No, answers });
        }
        let change = cause::examine(
            &serving.settings.persistence,
            object,
            self.event.event_type,
            self.memory.is_initial(),
            &handlers.extra_fields,
        )?;
        if let Some(doubts) = &mut self.memory.doubts {
            doubts.retry_if_overtaken(&change);
        }
        let cause = self.cause(patch, ObjectDetail::Change(kwargs(&change, None)));
        let asker = serving.asker(&cause, memo, logger);
        let subject = Subject { object, change: Some(&change) };
        let decision = |known: &Answers| {
            let in_scope = selection::prematched(&handlers.changing, &subject, known)?;
            if in_scope == Certainty::No {
                return Ok((in_scope, Certainty::No));
            }
            Ok((in_scope, selection::requires_finalizer(&handlers.changing, &subject, known)?))
        };
        let patience = patient.patience(serving, &mut self.memory.doubts);
        let (in_scope, required) =
            asker.decide_without_failures(&mut answers, patience, decision).await;
        let change = (in_scope == Certainty::Yes).then_some(change);
        Ok(Detected { change, required, answers })
    }

    /// The handlers of which nobody knows whether they want the change. It does not end without them; a deletion waits only for
    /// those that can hold it.
    async fn undecided(
        &mut self,
        change: &Change,
        (patch, memo): (&SharedPatch, &Memo),
        patient: &Patient,
        answers: &mut Answers,
    ) -> Vec<Arc<Handler>> {
        if plan::unhandled(change.reason).is_some() {
            return Vec::new();
        }
        let (serving, logger) = (self.serving, self.logger);
        let object = &self.event.object;
        let detail = ObjectDetail::Change(kwargs(change, None));
        let cause = self.cause(patch, detail);
        let asker = serving.asker(&cause, memo, logger);
        let subject = Subject { object, change: Some(change) };
        let handlers = &serving.handlers.changing;
        let decision = |known: &Answers| selection::sort_changing(handlers, &subject, known);
        let patience = patient.patience(serving, &mut self.memory.doubts);
        let sorted = asker.decide_without_failures(answers, patience, decision).await;
        let mut undecided = sorted.undecided;
        undecided.retain(|it| !change.deleted || it.requires_finalizer());
        undecided
    }

    /// Completes a change that all handlers have finished but the undecided ones, after the object has changed again: the others
    /// must see that as a change of its own. Returns whether there is something to send for it.
    fn complete(
        &mut self,
        undecided: &[Arc<Handler>],
        patch: &SharedPatch,
    ) -> Result<bool, CycleError> {
        let Some(doubts) = &mut self.memory.doubts else { return Ok(false) };
        let serving = self.serving;
        let owned = serving.handlers.changing.iter().map(|it| &it.id);
        let mut patch = patch.lock();
        let before = patch.merge.clone();
        let to = (serving.clock.now(), &mut patch.merge);
        let persistence = &serving.settings.persistence;
        doubts.complete(persistence, self.event.object.body(), owned, to)?;
        self.memory.handled_once = true;
        if !undecided.is_empty() {
            let undecided = undecided.iter().map(ToString::to_string).collect::<Vec<_>>();
            let text = format!(
                "A change is completed without {}: the object has changed again, and the filter still fails.",
                undecided.join(" and ")
            );
            self.logger.log(LogLevel::Warning, &text);
        }
        Ok(patch.merge != before)
    }

    /// Remembers what all handlers have finished but these.
    fn settle(&mut self, change: &Change, undecided: &[Arc<Handler>], is_finished: bool) {
        if undecided.is_empty() {
            self.memory.doubts.iter_mut().for_each(|it| it.unsettle());
        } else if is_finished && !change.deleted {
            self.memory.doubts.get_or_insert_default().settle(change);
        }
    }

    /// Follows whose finalizer it is; tells once when it turns out to be of somebody else.
    ///
    /// Returns whether the object has the finalizer, and it is ours.
    fn claim(&mut self, required: Certainty, blocked: bool) -> bool {
        let before = self.memory.claim;
        if required != Certainty::Unknown {
            self.memory.claim = before.seen(required == Certainty::Yes, blocked);
        }
        if before.is_ours() && !self.memory.claim.is_ours() {
            let text = format!(
                "The finalizer {} came back after it was removed: another operator needs it, so it is left alone. \
                 Give each operator a finalizer and annotations of its own, see settings.persistence.",
                self.serving.settings.persistence.finalizer
            );
            self.logger.log(LogLevel::Warning, &text);
        }
        blocked && (required == Certainty::Yes || self.memory.claim.is_ours())
    }

    fn hold(&mut self, hold: Hold, patch: &SharedPatch) {
        let finalizer: Arc<str> = self.serving.settings.persistence.finalizer.as_str().into();
        let (line, transformation) = match hold {
            Hold::Keep => return,
            Hold::Block => (
                "Adding the finalizer, thus preventing the actual deletion.",
                Transformation::BlockDeletion(finalizer),
            ),
            Hold::Release => (
                "Removing the finalizer, as there are no handlers requiring it.",
                Transformation::AllowDeletion(finalizer),
            ),
        };
        self.memory.claim = if hold == Hold::Release { Claim::Releasing } else { Claim::Ours };
        self.logger.log(LogLevel::Debug, line);
        patch.lock().transformations.push(transformation);
    }

    /// Whether what we see is not older than what we did ourselves. Waits for it if there is nothing better to do.
    async fn consistent(&self, patch: &SharedPatch) -> bool {
        let Some(expected) = self.expected else { return true };
        if !patch.lock().is_empty() {
            return false;
        }
        tokio::select! {
            biased; // at the deadline we go on, even if something newer came at the same moment
            () = time::sleep_until(expected.deadline) => true,
            () = self.queue.pressure() => false,
        }
    }

    fn cause(&self, patch: &SharedPatch, detail: ObjectDetail) -> ObjectCause {
        ObjectCause {
            resource: Arc::clone(&self.serving.resource),
            object: Arc::clone(&self.event.object),
            patch: Arc::clone(patch),
            detail,
        }
    }
}

/// Calls handlers of raw events, one after another. Returns those that took too long, and for how long they are to rest.
async fn call_in_turn(
    serving: &Serving,
    handlers: Vec<Arc<Handler>>,
    (cause, memo, logger): (&ObjectCause, &Memo, &Logger),
) -> Vec<(Arc<Handler>, Duration)> {
    let mut rests = Vec::new();
    for handler in handlers {
        let attempt = Try {
            handler: Arc::clone(&handler),
            retries: 0,
            started: serving.clock.now(),
            cause: Cause::Object(cause.clone()),
            memo: memo.clone(),
            logger: logger.clone(),
        };
        let (outcome, rest) = serving.runner().run_briefly(attempt).await;
        let deliver = |it| state::deliver(&mut cause.patch.lock().merge, &handler.id, &it);
        if let Some(Err(error)) = outcome.result.map(deliver) {
            let text = format!("The result of {handler} is dropped: {error}");
            logger.log(LogLevel::Error, &text);
        }
        rests.extend(rest.map(|it| (handler, it)));
    }
    rests
}
