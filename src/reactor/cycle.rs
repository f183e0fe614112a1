//! One pass over one event: recall → decide → handle → settle → patch.
//!
//! The only place that joins decisions with the world. Before: `worker.rs`. After: `change.rs`, then `handling/patching.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time;

use super::{
    change::Changing,
    memory::Memory,
    queue::{Event, Queue},
    serving::Serving,
    worker::Expectation,
};
use crate::handling::{
    asking::{Asker, FilterError},
    patching::{PatchError, Patcher},
    run::{Runner, Try},
};
use crate::logic::{
    cause::{self, Change},
    corrupt::CorruptState,
    filters::{Answers, Subject},
    object::Object,
    outcome::LogLevel,
    patch::{Patch, Transformation},
    plan::{self, Hold},
    progress, python_text,
    reason::{EventType, Reason},
    selection, state,
};
use crate::ports::{Cause, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, SharedPatch};

/// One pass over one event.
pub(super) struct Cycle<'a> {
    /// The resource and its handlers.
    pub(super) serving: &'a Serving,
    /// Where newer events wait.
    pub(super) queue: &'a Queue,
    /// The object's memory.
    pub(super) memory: &'a mut Memory,
    /// The event.
    pub(super) event: Event,
    /// For the operator's own lines.
    pub(super) logger: &'a Logger,
    /// Our own patch that has not come back yet.
    pub(super) expected: Option<&'a Expectation>,
}

/// Why a cycle ended early. Handlers' errors are not among these: they are outcomes.
#[derive(Debug, thiserror::Error)]
pub(super) enum CycleError {
    /// The state on the object cannot be read.
    #[error(transparent)]
    Corrupt(#[from] CorruptState),
    /// A filter callback raised.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The patch could not be sent.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// Results cannot be put into the status.
    #[error(transparent)]
    Result(#[from] state::Undeliverable),
    /// An invariant is broken.
    #[error("a bug in the operator itself: {0}; please report it")]
    Bug(String),
}

impl CycleError {
    /// Where in the script it happened, if it did.
    pub(super) fn trace(&self) -> Option<&str> {
        match self {
            CycleError::Filter(error) => error.raised.trace.as_deref(),
            CycleError::Patch(PatchError::Transformation(raised)) => raised.trace.as_deref(),
            CycleError::Patch(PatchError::Api(_))
            | CycleError::Corrupt(_)
            | CycleError::Result(_)
            | CycleError::Bug(_) => None,
        }
    }
}

/// What the handlers of changes left to do.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Pauses until handlers can go on.
    pub(super) delays: Vec<std::time::Duration>,
    /// Whether the object was looked at to the end, i.e. passed all gates.
    pub(super) looked_at: bool,
}

impl Cycle<'_> {
    /// Runs the pass. `patched` is the object as our last request left it, also when a later step fails.
    pub(super) async fn run(mut self, patched: &mut Option<Arc<Object>>) -> Result<(), CycleError> {
        let leftovers = std::mem::take(&mut self.memory.leftovers);
        let is_resuming_conflict = !leftovers.is_empty();
        let patch: SharedPatch =
            Arc::new(Mutex::new(Patch { transformations: leftovers, ..Patch::default() }));
        let memo = self.memory.memo(&self.serving.memo);
        self.watch(&patch, &memo).await?;
        let left = self.change(&patch, &memo, is_resuming_conflict).await?;
        if self.event.event_type != Some(EventType::Deleted) {
            self.conclude(&patch, &left, patched).await?;
        }
        Ok(())
    }

    /// Calls the handlers of raw events, once each.
    async fn watch(&mut self, patch: &SharedPatch, memo: &Memo) -> Result<(), CycleError> {
        if self.serving.handlers.watching.is_empty() {
            return Ok(());
        }
        let cause = self.cause(patch, ObjectDetail::Watch(self.event.event_type));
        let asker =
            Asker { scripts: &*self.serving.scripts, cause: &cause, memo, logger: self.logger };
        let subject = Subject { object: &self.event.object, change: None };
        let handlers = &self.serving.handlers.watching;
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
            let outcome = self.runner().run(attempt).await;
            if let Some(result) = outcome.result {
                state::deliver(&mut lock(patch).merge, &handler.id, &result)?;
            }
        }
        Ok(())
    }

    /// Everything about changes: what happened, whether we hold the object, the handlers, the release.
    async fn change(
        &mut self,
        patch: &SharedPatch,
        memo: &Memo,
        is_resuming_conflict: bool,
    ) -> Result<Left, CycleError> {
        let object = Arc::clone(&self.event.object);
        let persistence = &self.serving.settings.persistence;
        let (change, required, mut answers) = self.detect(&object, patch, memo).await?;
        let header = object.header();
        let ongoing = header.deletion_timestamp.is_some();
        let blocked = header.finalizers.contains(&persistence.finalizer);
        let hold = plan::hold(required, blocked, ongoing);
        let change = change.filter(|_| hold == Hold::Keep);
        self.hold(hold, patch);
        let is_consistent = match &change {
            Some(change) if change.reason != Reason::Gone => {
                self.consistent(patch, is_resuming_conflict).await
            }
            Some(_) | None => true,
        };
        if !is_consistent {
            return Ok(Left::default());
        }
        let delays = match change {
            Some(change) => {
                let changing = Changing {
                    serving: self.serving,
                    memory: &mut *self.memory,
                    logger: &self.logger.with_kind(LoggerKind::Full),
                    object: &object,
                    patch,
                    memo,
                };
                changing.run(&change, &mut answers).await?
            }
            None => Vec::new(),
        };
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        if !is_gone && ongoing && blocked && delays.is_empty() {
            self.logger
                .log(LogLevel::Debug, "Removing the finalizer, thus allowing the actual deletion.");
            lock(patch)
                .transformations
                .push(Transformation::AllowDeletion(persistence.finalizer.as_str().into()));
        }
        Ok(Left { delays, looked_at: true })
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
        let cause = self.cause(patch, ObjectDetail::Change(super::change::kwargs(&change, None)));
        let asker =
            Asker { scripts: &*self.serving.scripts, cause: &cause, memo, logger: self.logger };
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

    fn hold(&self, hold: Hold, patch: &SharedPatch) {
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
        self.logger.log(LogLevel::Debug, line);
        lock(patch).transformations.push(transformation);
    }

    /// Whether what we see is not older than what we did ourselves. Waits for it if there is nothing better to do.
    async fn consistent(&self, patch: &SharedPatch, is_resuming_conflict: bool) -> bool {
        if is_resuming_conflict {
            return false;
        }
        let Some(expected) = self.expected else { return true };
        if !lock(patch).is_empty() {
            return false;
        }
        tokio::select! {
            biased; // at the deadline we go on, even if something newer came at the same moment
            () = time::sleep_until(expected.deadline) => true,
            () = self.queue.pressure() => false,
        }
    }

    /// Sends the patch, or sleeps until the next handler is due and provokes an event then.
    async fn conclude(
        &mut self,
        patch: &SharedPatch,
        left: &Left,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<(), CycleError> {
        let mut patch = std::mem::take(&mut *lock(patch));
        let is_sent = !patch.is_empty();
        if is_sent {
            self.untouch(&mut patch);
            self.send(patch, patched).await?;
        }
        let is_changed = is_sent && self.is_changed(patched.as_deref());
        match left.delays.iter().min() {
            Some(delay) if is_changed => self.skip_sleep(*delay),
            Some(delay) => self.wait(*delay, patched).await?,
            None if !is_sent && left.looked_at => {
                self.logger
                    .log(LogLevel::Debug, "Handling cycle is finished, waiting for new changes.");
            }
            None => {}
        }
        Ok(())
    }

    /// Whether the patch made a new version, whose event will wake us. One that changed nothing wakes nobody.
    fn is_changed(&self, patched: Option<&Object>) -> bool {
        let before = &self.event.object.header().resource_version;
        patched.is_none_or(|it| it.header().resource_version != *before)
    }

    async fn send(
        &mut self,
        patch: Patch,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<(), CycleError> {
        let patcher = Patcher {
            cluster: &*self.serving.cluster,
            scripts: &*self.serving.scripts,
            resource: &self.serving.resource,
            logger: self.logger,
        };
        let sent = patcher.apply(&self.event.object, patch).await?;
        self.memory.leftovers = sent.leftovers;
        if sent.object.is_some() {
            *patched = sent.object;
        }
        Ok(())
    }

    fn skip_sleep(&self, delay: std::time::Duration) {
        if !delay.is_zero() {
            let left = python_text::float(delay);
            let text = format!("Sleeping was skipped because of the patch, {left} seconds left.");
            self.logger.log(LogLevel::Debug, &text);
        }
    }

    /// Sleeps until handlers are due, and provokes an event then.
    async fn wait(
        &mut self,
        delay: std::time::Duration,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<(), CycleError> {
        if self.sleep(delay).await { self.touch(patched).await } else { Ok(()) }
    }

    /// Sleeps until handlers are due; tells whether the whole time.
    async fn sleep(&self, delay: std::time::Duration) -> bool {
        if delay.is_zero() {
            return true;
        }
        let limited = delay.min(plan::SLEEP_MAX);
        let seconds = python_text::float(delay);
        let cap = if limited < delay {
            format!(" (capped {})", plan::SLEEP_MAX.as_secs())
        } else {
            String::new()
        };
        let text = format!("Sleeping for {seconds}{cap} seconds for the delayed handlers.");
        self.logger.log(LogLevel::Debug, &text);
        let until = time::Instant::now() + limited;
        let slept = tokio::select! {
            biased; // a pause that is complete counts as complete
            () = time::sleep_until(until) => true,
            () = self.queue.pressure() => false,
        };
        if !slept {
            let left = until.saturating_duration_since(time::Instant::now());
            let left = python_text::float(left);
            let text = format!("Sleeping was interrupted by new changes, {left} seconds left.");
            self.logger.log(LogLevel::Debug, &text);
        }
        slept
    }

    /// Provokes an event, so that the next cycle finds the handlers due. The delay survives a restart this way.
    async fn touch(&mut self, patched: &mut Option<Arc<Object>>) -> Result<(), CycleError> {
        let mut patch = Patch::default();
        let stamp = progress::touch_stamp(self.serving.clock.now());
        let storage = &self.serving.settings.persistence.progress_storage;
        progress::touch(storage, self.event.object.body(), &mut patch.merge, Some(&stamp));
        self.send(patch, patched).await
    }

    fn untouch(&self, patch: &mut Patch) {
        let storage = &self.serving.settings.persistence.progress_storage;
        progress::touch(storage, self.event.object.body(), &mut patch.merge, None);
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

/// The patch of the cycle. A panic while it was held cannot leave it half-written.
pub(super) fn lock(patch: &SharedPatch) -> std::sync::MutexGuard<'_, Patch> {
    patch.lock().unwrap_or_else(PoisonError::into_inner)
}
