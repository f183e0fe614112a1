//! One pass over one event: recall → decide → handle → settle → patch.
//!
//! The only place that joins decisions with the world. Before: `worker.rs`. After: `change/`, then
//! `conclusion.rs`.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::{self, Instant};

use super::{
    background::{Attended, Attending},
    calls::{Calls, Whom},
    change::{Attempts, Changing, Scene, kwargs},
    conclusion::{Conclusion, Left, Next, Unsent},
    delivery::{Delivery, Wanted},
    error::CycleError,
    expectation::Expectation,
    memory::Memory,
    order,
    place::Place,
    queue::{Event, Queue},
    serving::Serving,
};
use crate::features::indexes::Indexer;
use crate::handling::{
    patching::PatchError,
    run::{Runner, Try},
};
use crate::logic::{
    cause::{self, Change},
    claim::{Claim, Quiet},
    failed::Failed,
    filters::{Answers, Subject},
    handler::Handler,
    indexing::Owner,
    json,
    object::{Object, Unreadable},
    outcome::LogLevel,
    patch::Transformation,
    plan::{self, Hold},
    progress,
    reason::{EventType, Reason},
    selection, state,
};
use crate::ports::{
    Address, Cause, Emptied, ErrorClass, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail,
    SharedPatch,
};
use crate::settings::ProgressStorage;

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
        if let Some(problem) = self.event.object.problem() {
            self.pass_over(&problem);
            return Ok(Next::Event);
        }
        self.memory.unreadable = None;
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
        let is_older = !self.refresh().await?;
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
        let left = if is_older {
            Left { delays: attended.delays, looked_at: false, is_awaited: attended.is_awaited }
        } else {
            self.change(&mut wanted, &patch, &memo, attended).await?
        };
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

    /// Leaves an object alone that cannot be read: its handlers would see an empty one. The next version brings it back.
    fn pass_over(&mut self, problem: &Unreadable) {
        let header = self.event.object.header();
        self.serving.facilities.indexes.remove(&Owner::of(header));
        self.serving.hold.indexed(header);
        self.calls.indexed();
        self.queue.show(self.calls.turn);
        let version = header.resource_version.as_deref().unwrap_or_default();
        if self.memory.unreadable.as_deref() != Some(version) {
            self.memory.unreadable = Some(version.into());
            let text = format!(
                "The object cannot be read: {problem}. No handler is called, and nothing is written to it, until it is changed. \
                 Flatten it, or store the nested part as a string."
            );
            self.logger.log(LogLevel::Error, &text);
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

    /// Returns whether the event may be handled as a change. One that is older than our own last request may not: its handlers
    /// would be called again; nor may one of an object that was gone at our last request. While the event of that request is certain to come soon, it is waited for; otherwise the server is
    /// asked, and the event shows the object as it is now.
    async fn refresh(&mut self) -> Result<bool, CycleError> {
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let is_older = order::is_older(&self.event.object, self.memory.own);
        if is_gone || !is_older && !self.memory.is_gone {
            return Ok(true);
        }
        if let Some(expected) = self.expected.filter(|it| is_older && Instant::now() < it.deadline)
        {
            if self.event.event_type.is_none() {
                self.event.object = Arc::clone(&expected.object);
            }
            return Ok(false);
        }
        if !self.queue.is_empty() {
            return Ok(false);
        }
        let header = self.event.object.header();
        let address = Address {
            resource: &self.serving.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
        };
        let object = match self.serving.cluster.get(address).await {
            Ok(object) if object.header().uid == header.uid => object,
            // The event that says so is to come.
            Ok(_) => return Ok(false),
            Err(error) if error.class == ErrorClass::Missing => return Ok(false),
            Err(error) => return Err(CycleError::Patch(PatchError::Api(error))),
        };
        if order::is_older(&object, self.memory.own) {
            // The server itself has gone back, as after a restored backup: the order of versions begins anew.
            self.memory.own = None;
        }
        self.memory.is_gone = false;
        self.event.object = Arc::new(object);
        Ok(true)
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
        let Attended { is_required, mut delays, is_awaited } = attended;
        let required = required || is_required;
        self.claim(required, blocked);
        let patience = if ongoing && has_finalizer(&object) { self.patience() } else { None };
        let is_abandoned = patience.is_some_and(|it| it.is_zero());
        let blocked = blocked && (required || self.memory.claim.is_ours() || is_abandoned);
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
        delays.extend(patience.filter(|it| !it.is_zero()));
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
        object.body();
        if let Some(problem) = object.problem() {
            return Err(CycleError::Unreadable(problem));
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
                "The finalizer {} came back after it was removed: another operator may need it, so it is left alone until \
                 the object is deleted. Give each operator a finalizer and annotations of its own, see settings.persistence.",
                self.serving.settings.persistence.finalizer
            );
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    /// Returns how long a deletion still waits for the other operator whose finalizer this seems to be, as long as nobody does
    /// anything about it; `None` if the finalizer is ours.
    fn patience(&mut self) -> Option<Duration> {
        if self.memory.claim.is_ours() {
            self.memory.quiet = None;
            return None;
        }
        let persistence = &self.serving.settings.persistence;
        let body = self.event.object.body();
        let in_progress = progress::any(&persistence.progress_storage, body);
        let now = self.serving.uptime();
        let before = self.memory.quiet.take().map(|it| *it);
        let quiet =
            Quiet::seen(before, state_of(body, &persistence.progress_storage), in_progress, now);
        let remaining = quiet.remaining(now);
        if !remaining.is_zero() {
            self.memory.quiet = Some(Box::new(quiet));
            return Some(remaining);
        }
        let text = format!(
            "The finalizer {} came back after it was removed, and nobody does anything about the deletion of the object: \
             removing it again.",
            persistence.finalizer
        );
        self.logger.log(LogLevel::Warning, &text);
        Some(remaining)
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

/// A number for the state of an object. What makes an event for ourselves changes nothing.
fn state_of(body: &Value, storage: &ProgressStorage) -> u64 {
    let mut untouched = Map::new();
    progress::touch(storage, body, &mut untouched, None);
    let mut body = body.clone();
    json_patch::merge(&mut body, &Value::Object(untouched));
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    json::fingerprint(&body)
}
