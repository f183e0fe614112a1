//! Undecided handlers: their filters have failed, or indexes that their scripts use are incomplete.
//!
//! All other handlers are called meanwhile. A cycle with no other work waits here until something can be decided. Before: `cycle.rs`. The
//! remembered state: `logic/change/undecided`.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures::future;
use tokio::time::Instant;

use super::{
    change::{ChangeContext, Changing, Settling, kwargs},
    conclusion::Next,
    cycle::{Cycle, Pass},
    daemon_sync::SyncDaemons,
    delivery::CycleResult,
    error::CycleError,
    memory::Memory,
};
use crate::call::{LoggerKind, ObjectDetail};
use crate::handling::asking::{ANSWER_MAX, FilterRetries};
use crate::logic::{
    change::{
        cause::Change,
        failed::FailedHandlers,
        filters::{Answers, Subject},
        plan, selection,
        undecided::Undecided,
    },
    handlers::{function::ScriptId, handler::Handler, outcome::LogLevel},
    object::{Object, conditions, corrupt::CorruptState},
};
use crate::ports::until;
use crate::reactor::object::{context::StreamContext, permits::WorkerPermit, queue::ObjectQueue};
use crate::telemetry::HandlerLabels;

/// The state of undecided handlers at the start of one cycle.
pub(in crate::reactor) struct FilterContext {
    /// The scripts that wait for indexes.
    waiting: Arc<BTreeSet<ScriptId>>,
    /// The time when all filters must have returned.
    deadline: Instant,
}

/// The extent to which a change was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reactor) enum Handled {
    /// Not at all: another step comes first.
    Later,
    /// Some handlers are undecided about it.
    InPart,
    /// All handlers are decided about it.
    ByAll,
}

/// The wait of a cycle that has no other work.
pub(in crate::reactor) struct UndecidedWait<'a> {
    pub(in crate::reactor) serving: &'a StreamContext,
    pub(in crate::reactor) queue: &'a ObjectQueue,
    pub(in crate::reactor) permit: &'a WorkerPermit,
    pub(in crate::reactor) memory: &'a Memory,
    pub(in crate::reactor) filters: &'a FilterContext,
}

impl FilterContext {
    /// Creates the context at the start of a cycle, before the complete indexes are known.
    pub(in crate::reactor) fn new(memory: &mut Memory) -> Self {
        if let Some(undecided) = &mut memory.undecided {
            undecided.begin();
        }
        FilterContext::complete()
    }

    /// Creates the context for a time when all indexes are complete.
    pub(in crate::reactor) fn complete() -> Self {
        FilterContext { waiting: Arc::default(), deadline: Instant::now() + ANSWER_MAX }
    }

    /// Stores the scripts that wait for indexes, after the cycle itself has waited since `start`.
    pub(in crate::reactor) fn wait_for(&mut self, scripts: BTreeSet<ScriptId>, start: Instant) {
        self.waiting = Arc::new(scripts);
        // The wait for indexes does not count.
        self.deadline += start.elapsed();
    }

    /// Returns an empty set of answers for one cause.
    pub(in crate::reactor) fn answers(&self) -> Answers {
        Answers::without(&self.waiting)
    }

    /// Returns the rules for filter calls and their retries.
    pub(in crate::reactor) fn retries<'a>(
        &self,
        serving: &'a StreamContext,
        undecided: &'a mut Option<Box<Undecided>>,
    ) -> FilterRetries<'a> {
        let delays = &serving.settings.queueing.error_delays;
        FilterRetries { undecided, delays, start: serving.start, deadline: self.deadline }
    }

    /// Returns whether a handler waits for indexes.
    pub(in crate::reactor) fn waits(&self, handler: &Handler) -> bool {
        self.waiting.contains(&handler.function.script)
    }

    /// Ends the cycle: removes the handlers that were decided.
    pub(in crate::reactor) fn end(memory: &mut Memory, now: Duration) {
        let Some(undecided) = &mut memory.undecided else { return };
        undecided.end(now);
        if undecided.is_empty() {
            memory.undecided = None;
        }
    }
}

impl Cycle<'_> {
    /// Handles a change, as far as the handlers for it can be decided.
    pub(in crate::reactor) async fn handle(
        &mut self,
        change: Change,
        wanted: &mut CycleResult,
        pass: Pass<'_>,
        (answers, is_held): (&mut Answers, bool),
    ) -> Result<Handled, CycleError> {
        let undecided = self.undecided(&change, pass, answers).await;
        if undecided.iter().any(|it| pass.filters.waits(it)) {
            // The handler will see the latest change later, together with all others.
            return Ok(Handled::Later);
        }
        let object = Arc::clone(&self.event.object);
        let mut overtaken = self.overtaken(&change)?;
        if !undecided.is_empty()
            && let Some(before) = overtaken.take_if(|it| !it.has_unfinished())
        {
            self.complete(&undecided);
            let own = before.own(self.serving, object.body(), &mut wanted.attempts).await;
            if !own.is_empty() {
                wanted.settling = Some(before);
                return Ok(Handled::Later);
            }
        }
        let context = ChangeContext {
            serving: self.serving,
            logger: &self.logger.with_kind(LoggerKind::Full),
            object: &object,
            patch: pass.patch,
            attempts: &wanted.attempts,
            memo: pass.memo,
        };
        let is_held = is_held || !undecided.is_empty() || overtaken.is_some();
        let persistence = &self.serving.settings.persistence;
        let failed = FailedHandlers::of(persistence, object.body());
        self.memory.has_failed = !failed.is_empty();
        if self.memory.has_failed {
            self.recall(&failed, &object);
        }
        self.adopt_condition(&object);
        let (queue, permit, filters) = (self.queue, self.permit, pass.filters);
        let (memory, background) = self.memory.for_change();
        let changing = Changing { context, memory, filters, queue, permit, is_held };
        let changing = changing.run(change.clone(), answers);
        wanted.settling = if filters.waiting.is_empty() {
            changing.await?
        } else {
            let sync = SyncDaemons {
                serving: self.serving,
                queue,
                background,
                undecided: &mut None,
                event_type: self.event.event_type,
                object: &object,
                memo: pass.memo,
                logger: self.logger,
                filters,
            };
            Box::pin(sync.run_late(pin!(changing))).await?
        };
        let now = self.serving.clock.now();
        let is_finished = wanted.settling.as_ref().is_none_or(|it| it.delays(now).is_empty());
        match overtaken {
            // The change that has just ended is recorded first.
            Some(before) if is_finished && self.is_recorded(wanted).await => {
                self.complete(&undecided);
                wanted.settling = Some(before);
            }
            Some(_) => {}
            None => self.settle(&change, &undecided, is_finished),
        }
        Ok(if undecided.is_empty() { Handled::ByAll } else { Handled::InPart })
    }

    /// Counts the failures that an earlier process has recorded.
    fn recall(&self, failed: &FailedHandlers, object: &Object) {
        let about = || Arc::new(self.serving.resource.reference_to(object.header()));
        let uid = object.header().uid.as_deref().unwrap_or_default();
        let failures = &self.serving.services.failures;
        let labels = |id: &str| self.labels(id);
        failures.recall(about, (uid, failed.ids()), labels, self.serving.clock.now());
    }

    /// Registers an object whose condition shows a failure: an earlier process may have written it.
    fn adopt_condition(&self, object: &Object) {
        let Some(kind) = &self.serving.settings.posting.condition else { return };
        if conditions::has(object.body(), kind, conditions::ConditionStatus::False) {
            let about = || Arc::new(self.serving.resource.reference_to(object.header()));
            self.serving.services.failures.adopt(about, &self.serving.resource);
        }
    }

    /// Returns the labels of a handler in metrics.
    fn labels(&self, id: &str) -> HandlerLabels {
        let top = id.split('/').next().unwrap_or(id);
        let known = self.serving.handlers.changing.iter().find(|it| &*it.id == top);
        let resource = Some(&*self.serving.resource);
        match known {
            Some(handler) => HandlerLabels::of(handler, resource),
            None => HandlerLabels {
                handler: top.to_owned(),
                resource: self.serving.resource.to_string(),
                ..HandlerLabels::default()
            },
        }
    }

    /// Returns whether everything to record is already on the object.
    async fn is_recorded(&self, wanted: &mut CycleResult) -> bool {
        let CycleResult { settling, attempts, .. } = wanted;
        let body = self.event.object.body();
        let Some(settling) = settling else { return true };
        settling.own(self.serving, body, attempts).await.is_empty()
    }

    /// Returns the handlers that are undecided about the change. The change does not end without them; a deletion waits only for
    /// those that require the finalizer.
    async fn undecided(
        &mut self,
        change: &Change,
        Pass { patch, memo, filters }: Pass<'_>,
        answers: &mut Answers,
    ) -> Vec<Arc<Handler>> {
        if plan::unhandled(change.reason).is_some() {
            return Vec::new();
        }
        let (serving, logger) = (self.serving, self.logger);
        let object = &self.event.object;
        let detail = ObjectDetail::Change(kwargs(change));
        let cause = self.cause(patch, detail);
        let filter_caller = serving.filter_caller(&cause, memo, logger);
        let subject = Subject { object, change: Some(change) };
        let handlers = &serving.handlers.changing;
        let decision = |known: &Answers| selection::sort_changing(handlers, &subject, known);
        let retries = filters.retries(serving, &mut self.memory.undecided);
        let sorted = filter_caller.decide_without_failures(answers, retries, decision).await;
        let mut undecided = sorted.undecided;
        undecided.retain(|it| !change.deleted || it.requires_finalizer());
        undecided
    }

    /// Returns the end of a change that all handlers except the undecided ones have finished, if the object has changed again since then:
    /// the undecided handlers must see the new change separately.
    fn overtaken(&self, change: &Change) -> Result<Option<Settling>, CorruptState> {
        let undecided = self.memory.undecided.as_ref();
        let Some(seen) = undecided.and_then(|it| it.overtaken(change)) else { return Ok(None) };
        let body = self.event.object.body();
        Settling::of_overtaken(change, Arc::clone(seen), self.serving, body).map(Some)
    }

    /// Completes an overtaken change without these handlers.
    fn complete(&mut self, undecided: &[Arc<Handler>]) {
        self.memory.undecided.iter_mut().for_each(|it| it.unsettle());
        self.memory.handled_once = true;
        if undecided.is_empty() {
            return;
        }
        let undecided = undecided.iter().map(ToString::to_string).collect::<Vec<_>>();
        let text = format!(
            "A change is completed without {}: its filter still fails, and the object has changed again.",
            undecided.join(" and ")
        );
        self.logger.log(LogLevel::Warning, &text);
    }

    /// Stores that all handlers except these have finished the change.
    fn settle(&mut self, change: &Change, undecided: &[Arc<Handler>], is_finished: bool) {
        if undecided.is_empty() {
            self.memory.undecided.iter_mut().for_each(|it| it.unsettle());
        } else if is_finished && !change.deleted {
            self.memory.undecided.get_or_insert_default().settle(change);
        }
    }
}

impl UndecidedWait<'_> {
    /// Returns whether anything is awaited that may come before all of these delays.
    pub(in crate::reactor) fn comes_before(&self, delays: &[Duration]) -> bool {
        let pause = self.pause();
        self.is_for_indexes() || pause.is_some_and(|it| delays.iter().all(|delay| it < *delay))
    }

    /// Waits until something can be decided, newer events arrive, or one of these delays is over. Returns at once if everything is
    /// decided.
    pub(in crate::reactor) async fn run(self, delays: &[Duration]) -> Next {
        let pause = self.pause();
        if pause.is_none() && !self.is_for_indexes() {
            return Next::Event;
        }
        let due = delays.iter().copied().chain(pause).min().map(|it| Instant::now() + it);
        let wait = async {
            tokio::select! {
                biased; // a newer event comes first
                () = self.queue.pressure() => Next::Event,
                () = until(due) => Next::Again,
                () = self.opening() => Next::Again,
                () = self.exit() => Next::Again,
                () = self.serving.replaced.cancelled() => Next::Again,
            }
        };
        // Other workers use the permit meanwhile.
        self.permit.release_while(wait).await
    }

    fn pause(&self) -> Option<Duration> {
        let undecided = self.memory.undecided.as_ref();
        let undecided = undecided.and_then(|it| it.pause(self.serving.uptime()));
        let unconfirmed = self.memory.unconfirmed;
        let unconfirmed = unconfirmed.map(|it| it.saturating_duration_since(Instant::now()));
        undecided.into_iter().chain(unconfirmed).min()
    }

    fn is_for_indexes(&self) -> bool {
        !self.filters.waiting.is_empty()
    }

    async fn opening(&self) {
        if !self.is_for_indexes() {
            return future::pending().await;
        }
        self.serving.open_for(self.filters.waiting.iter()).await;
    }

    /// Waits until a daemon that was requested to stop has ended.
    async fn exit(&self) {
        match &self.memory.background {
            Some(background) => background.exit().await,
            None => future::pending().await,
        }
    }
}
