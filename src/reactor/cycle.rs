//! One pass over one event: recall → decide → handle → settle → patch.
//!
//! The only place that joins decisions with the world. Before: `worker.rs`. After: `change/`, then
//! `conclusion.rs`.

use std::sync::Arc;

use tokio::time;

use super::{
    background::{Attended, Attending},
    calls::{Calls, Whom},
    change::{Attempts, Changing, Scene, kwargs},
    conclusion::{Conclusion, Left, Next, Unsent},
    delivery::{Delivery, Wanted},
    error::CycleError,
    expectation::Expectation,
    memory::Memory,
    place::Place,
    queue::{Event, Queue},
    serving::Serving,
};
use crate::features::indexes::Indexer;
use crate::handling::run::{Runner, Try};
use crate::logic::{
    cause::{self, Change},
    claim::Claim,
    failed::Failed,
    filters::{Answers, Subject},
    handler::Handler,
    indexing::Owner,
    object::Object,
    outcome::LogLevel,
    patch::Transformation,
    plan::{self, Hold},
    reason::{EventType, Reason},
    selection, state,
};
use crate::ports::{
    Cause, Emptied, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, SharedPatch,
};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Open,
    /// The stream ends.
    Ended,
    /// There are other handlers now.
    Replaced,
}

impl Cycle<'_> {
    /// Runs the pass. `patched` is the object as our last request has changed it, also when a later step fails.
    pub(super) async fn run(
        mut self,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Next, CycleError> {
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let own = self.memory.unsent.take_if(|it| is_gone || it.left.is_some()).map(|it| *it);
        if let Some(Unsent { delivery, left: Some(left) }) = own.filter(|_| !is_gone) {
            return self.conclusion(patched).run(delivery, left).await;
        }
        let patch = SharedPatch::default();
        // Also when the cycle fails.
        let _emptied = Emptied(Arc::clone(&patch));
        let memo = self.memory.memo(&self.serving.memo);
        self.index(&memo).await?;
        self.calls.indexed();
        self.queue.show(self.calls.turn);
        if self.event.for_indexes {
            return Ok(Next::Event);
        }
        match self.opening().await {
            Opening::Open if !self.is_paused() => {}
            Opening::Open | Opening::Ended => return Ok(Next::Event),
            Opening::Replaced => return Ok(Next::Anew),
        }
        let mut wanted = Wanted::default();
        self.watch(&patch, &wanted.attempts, &memo).await?;
        if let Some(unsent) = self.memory.unsent.take()
            && self.conclusion(patched).catch_up(unsent.delivery).await?
        {
            // What handlers of this event have changed goes as well.
            let delivery = self.delivery(Wanted { patch: patch.take(), ..wanted });
            self.conclusion(patched).run(delivery, Left::default()).await?;
            return Ok(Next::Coming);
        }
        let attending = Attending {
            serving: self.serving,
            memory: &mut *self.memory,
            event_type: self.event.event_type,
            object: &self.event.object,
            memo: &memo,
            logger: self.logger,
        };
        let attended = attending.run().await?;
        let left = self.change(&mut wanted, &patch, &memo, attended).await?;
        if is_gone {
            return Ok(Next::Event);
        }
        let delivery = self.delivery(Wanted { patch: patch.take(), ..wanted });
        self.conclusion(patched).run(delivery, left).await
    }

    fn delivery(&self, wanted: Wanted) -> Delivery {
        Delivery::of(wanted, self.serving.resource.subresources.contains("status"))
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
    async fn index(&mut self, memo: &Memo) -> Result<(), CycleError> {
        if self.serving.handlers.indexing.is_empty() || self.calls.indexing.is_nobody() {
            return Ok(());
        }
        let only = match &self.calls.indexing {
            Whom::All => None,
            Whom::Only(ids) => Some(ids),
        };
        let header = self.event.object.header();
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let indexed = if is_gone {
            self.serving.facilities.indexes.remove(&Owner::of(header));
            Ok(())
        } else {
            let mut failures = self.memory.unindexed.take().unwrap_or_default();
            let news = self.event.news.as_ref().map(|it| &it.indexes);
            // What failed before was another function.
            news.into_iter().chain(only).flatten().for_each(|id| failures.forget(id));
            let indexer = Indexer {
                runner: self.runner(),
                handlers: &self.serving.handlers.indexing,
                only,
                cause: self.cause(&SharedPatch::default(), ObjectDetail::Index),
                memo,
                logger: self.logger,
            };
            let indexed = indexer.run(&mut failures).await.map_err(CycleError::Index);
            self.memory.unindexed = Some(failures).filter(|it| !it.is_empty());
            indexed
        };
        self.serving.hold.indexed(header);
        indexed
    }

    /// Waits until the tables are complete.
    async fn opening(&self) -> Opening {
        let Serving { hold, gate, replaced, .. } = self.serving;
        if self.serving.is_open() {
            return Opening::Open;
        }
        let wait = async {
            tokio::select! {
                biased; // both at once: nothing new begins at the end, and nothing old after a reload
                () = self.queue.ended() => Opening::Ended,
                () = replaced.cancelled() => Opening::Replaced,
                () = hold.open(gate.as_ref()) => Opening::Open,
            }
        };
        // Others may need the place to complete the tables.
        self.place.without(wait).await
    }

    /// Calls the handlers of raw events, once each.
    async fn watch(
        &mut self,
        patch: &SharedPatch,
        attempts: &Attempts,
        memo: &Memo,
    ) -> Result<(), CycleError> {
        let all = &self.serving.handlers.watching;
        let (handlers, event_type) = match self.calls.take_watching() {
            Whom::All => (all.clone(), self.event.event_type),
            // Nothing has happened: they see the object as at a start.
            Whom::Only(ids) => {
                let is_new = |it: &&Arc<Handler>| ids.contains(&it.id);
                (all.iter().filter(is_new).cloned().collect(), None)
            }
        };
        if handlers.is_empty() {
            return Ok(());
        }
        let handlers = &handlers;
        let cause = self.cause(patch, ObjectDetail::Watch(event_type));
        let asker = self.serving.asker(&cause, memo, self.logger);
        let subject = Subject { object: &self.event.object, change: None };
        let mut answers = Answers::default();
        let selected = asker
            .decide(&mut answers, |known| selection::watching(handlers, &subject, known))
            .await?;
        for handler in selected {
            let attempt = Try {
                handler: Arc::clone(&handler),
                retries: 0,
                started: self.serving.clock.now(),
                cause: Cause::Object(cause.clone()),
                memo: memo.clone(),
                logger: self.logger.clone(),
            };
            let number = attempts.begin(&handler, None, attempt.started, patch);
            let outcome = self.runner().run(attempt).await;
            if let Some(result) = outcome.result
                && let Err(error) = state::deliver(&mut patch.lock().merge, &handler.id, &result)
            {
                self.logger.log(LogLevel::Error, &format!("Result is dropped: {error}"));
            }
            attempts.end(number, patch);
        }
        Ok(())
    }

    /// Everything about changes: what happened, whether we hold the object, the handlers, the release.
    async fn change(
        &mut self,
        wanted: &mut Wanted,
        patch: &SharedPatch,
        memo: &Memo,
        attended: Attended,
    ) -> Result<Left, CycleError> {
        let object = Arc::clone(&self.event.object);
        let persistence = &self.serving.settings.persistence;
        let (change, required, mut answers) = self.detect(&object, patch, memo).await?;
        let ongoing = object.header().deletion_timestamp.is_some();
        let has_finalizer = |it: &Object| it.header().finalizers.contains(&persistence.finalizer);
        // The event may be older than our own request which added it.
        let blocked =
            has_finalizer(&object) || self.expected.is_some_and(|it| has_finalizer(&it.object));
        let Attended { is_required, delays, is_awaited } = attended;
        let required = required || is_required;
        self.claim(required, blocked);
        let blocked = blocked && (required || self.memory.claim.is_ours());
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let hold = plan::hold(required, blocked, ongoing || is_gone);
        let change = change.filter(|_| hold == Hold::Keep);
        wanted.finalizer = self.hold(hold);
        let is_consistent = match &change {
            Some(change) if change.reason != Reason::Gone => self.consistent(patch).await,
            Some(_) | None => true,
        };
        if !is_consistent {
            return Ok(Left { delays, looked_at: false, is_awaited });
        }
        let looked_at = change.is_some();
        if let Some(change) = change {
            let scene = Scene {
                serving: self.serving,
                logger: &self.logger.with_kind(LoggerKind::Full),
                object: &object,
                patch,
                attempts: &wanted.attempts,
                memo,
            };
            let is_held = ongoing && !delays.is_empty();
            self.memory.has_failed =
                !Failed::of(&self.serving.settings.persistence, object.body()).is_empty();
            let (memory, queue, place) = (&mut *self.memory, self.queue, self.place);
            let changing = Changing { scene, memory, queue, place, is_held };
            wanted.settling = changing.run(change, &mut answers).await?;
        }
        let now = self.serving.clock.now();
        let is_waiting =
            wanted.settling.as_ref().is_some_and(|it| !it.settlement(now).delays.is_empty());
        if !is_gone && ongoing && blocked && delays.is_empty() && !is_waiting {
            self.logger
                .log(LogLevel::Debug, "Removing the finalizer, thus allowing the actual deletion.");
            wanted.finalizer =
                Some(Transformation::AllowDeletion(persistence.finalizer.as_str().into()));
        }
        Ok(Left { delays, looked_at, is_awaited })
    }

    /// What happened, if any change handler cares for the object, and whether any of them needs to hold it.
    async fn detect(
        &self,
        object: &Arc<Object>,
        patch: &SharedPatch,
        memo: &Memo,
    ) -> Result<(Option<Change>, bool, Answers), CycleError> {
        let mut answers = Answers::default();
        let handlers = &self.serving.handlers;
        if handlers.changing.is_empty() {
            return Ok((None, false, answers));
        }
        let persistence = &self.serving.settings.persistence;
        let initial = self.memory.is_initial();
        let change = cause::examine(
            persistence,
            object,
            self.event.event_type,
            initial,
            &handlers.extra_fields,
        )?;
        let cause = self.cause(patch, ObjectDetail::Change(kwargs(&change, None)));
        let asker = self.serving.asker(&cause, memo, self.logger);
        let subject = Subject { object, change: Some(&change) };
        let (is_in_scope, required) = asker
            .decide(&mut answers, |known| {
                let in_scope = selection::prematched(&handlers.changing, &subject, known)?;
                Ok((
                    in_scope,
                    in_scope && selection::requires_finalizer(&handlers.changing, &subject, known)?,
                ))
            })
            .await?;
        Ok((is_in_scope.then_some(change), required, answers))
    }

    /// Follows whose finalizer it is; tells once when it turns out to be of somebody else.
    fn claim(&mut self, required: bool, blocked: bool) {
        let before = self.memory.claim;
        self.memory.claim = before.seen(required, blocked);
        if before.is_ours() && !self.memory.claim.is_ours() {
            let text = format!(
                "The finalizer {} came back after it was removed: another operator needs it, so it is left alone. \
                 Give each operator a finalizer and annotations of its own, see settings.persistence.",
                self.serving.settings.persistence.finalizer
            );
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    /// What is to become of our finalizer before anything else.
    fn hold(&mut self, hold: Hold) -> Option<Transformation> {
        let finalizer: Arc<str> = self.serving.settings.persistence.finalizer.as_str().into();
        let (line, transformation) = match hold {
            Hold::Keep => return None,
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
        Some(transformation)
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

    fn runner(&self) -> Runner<'_> {
        self.serving.runner()
    }
}
