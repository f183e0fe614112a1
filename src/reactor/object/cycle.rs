//! One pass over one event: recall → decide → handle → settle → patch.
//!
//! The only place that connects the pure decisions with I/O. Before: `worker.rs`. Its steps: `watching.rs`, `daemon_sync.rs`, `holding.rs`,
//! `undecided.rs`. After: `change/`, then `conclusion.rs`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{
    change::kwargs,
    conclusion::{Applied, Conclusion, Next, RemainingWork, Unsent},
    daemon_sync::{DaemonSync, SyncDaemons},
    delivery::{CycleResult, Delivery},
    error::CycleError,
    expectation::Expectation,
    holding::FinalizerState,
    memory::Memory,
    undecided::{FilterContext, Handled, UndecidedWait},
};
use crate::call::{ClearOnDrop, Logger, Memo, ObjectCause, ObjectDetail, SharedPatch};
use crate::features::{indexes::Indexer, reconcile};
use crate::handling::{patching::PatchError, time_slice::TimeSlice};
use crate::logic::{
    background::indexing::Owner,
    change::{
        cause::{self, Change},
        filters::{Answers, Subject},
        order::{self, EventView, Freshness},
        patch::Transformation,
        plan::{self, Hold},
        selection::{self, Certainty},
        suspended,
    },
    handlers::{function::ScriptId, outcome::LogLevel},
    object::{
        Object, Unreadable,
        reason::{EventType, Reason},
    },
};
use crate::ports::{Address, NewerEvents as _};
use crate::reactor::object::{
    context::StreamContext,
    pending_calls::{HandlerSet, PendingCalls},
    permits::WorkerPermit,
    queue::{Event, ObjectQueue},
};

/// Time limit after which indexing releases its worker permit to other objects.
const PROMPT: Duration = Duration::from_secs(1);

/// One pass over one event.
pub(in crate::reactor) struct Cycle<'a> {
    /// The resource and its handlers.
    pub(in crate::reactor) serving: &'a StreamContext,
    /// The queue of newer events.
    pub(in crate::reactor) queue: &'a ObjectQueue,
    /// The worker's permit, released while it waits for something other than its own work.
    pub(in crate::reactor) permit: &'a WorkerPermit,
    /// The object's memory.
    pub(in crate::reactor) memory: &'a mut Memory,
    /// The event that the cycle handles.
    pub(in crate::reactor) event: Event,
    /// The logger for the operator's own lines.
    pub(in crate::reactor) logger: &'a Logger,
    /// The operator's own patch whose event has not arrived yet.
    pub(in crate::reactor) expected: Option<&'a Expectation>,
    /// The handlers that must still be called, besides those of changes, daemons and timers.
    pub(in crate::reactor) calls: &'a mut PendingCalls,
}

/// The inputs that all steps of one pass share.
#[derive(Clone, Copy)]
pub(in crate::reactor) struct Pass<'a> {
    /// The changes that handlers request.
    pub(in crate::reactor) patch: &'a SharedPatch,
    /// The object's memo, which its handlers share.
    pub(in crate::reactor) memo: &'a Memo,
    /// The scripts that wait for indexes, and the deadline of filters.
    pub(in crate::reactor) filters: &'a FilterContext,
}

/// The end of the wait for the indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Opening {
    /// Handlers may be called, but not yet those of these scripts.
    Open(BTreeSet<ScriptId>),
    /// The stream ends: the cycle is given up.
    Ended,
    /// The handlers of the stream were replaced.
    Replaced,
}

/// The relation of the change handlers to an event.
struct Detected {
    /// `None` unless the object is certainly in the scope of any of them.
    change: Option<Change>,
    /// Whether any of them requires the finalizer.
    required: Certainty,
    /// The results of their filters so far.
    answers: Answers,
}

impl Cycle<'_> {
    /// Runs the pass. Sets `patched` to the object as returned by the operator's last request, also if a later step fails.
    pub(in crate::reactor) async fn run(
        mut self,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Next, CycleError> {
        if let Some(problem) = self.event.object.problem() {
            self.pass_over(&problem).await;
            return Ok(Next::Event);
        }
        self.memory.unreadable = None;
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let handlers = &self.serving.handlers;
        let is_of_event = |it: &mut Box<Unsent>| !it.is_replaced(handlers) && it.left.is_some();
        let own = self.memory.unsent.take_if(|it| is_gone || is_of_event(it)).map(|it| *it);
        if let Some(Unsent { delivery, object, left: Some(left), .. }) = own.filter(|_| !is_gone) {
            self.event.object = object;
            return Box::pin(self.send_again(delivery, left, patched)).await;
        }
        let patch = SharedPatch::default();
        // Drops the functions of the patch also if the cycle fails.
        let _clear = ClearOnDrop(Arc::clone(&patch));
        let memo = self.memory.memo(&self.serving.memo);
        let mut filters = FilterContext::new(self.memory);
        self.index(&memo, &filters).await;
        self.calls.indexed();
        self.queue.show(self.calls.version);
        if self.event.for_indexes {
            FilterContext::end(self.memory, self.serving.uptime());
            return Ok(Box::pin(self.wait(&filters)).await);
        }
        let start = Instant::now();
        match self.opening().await {
            Opening::Open(waiting) if !self.is_paused() => filters.wait_for(waiting, start),
            Opening::Open(_) | Opening::Ended => return Ok(Next::Event),
            Opening::Replaced => return Ok(Next::Anew),
        }
        let pass = Pass { patch: &patch, memo: &memo, filters: &filters };
        // Boxed, so that thousands of objects that wait for the indexes take little memory.
        Box::pin(self.call(pass, patched)).await
    }

    /// Calls the handlers of the event, and sends their changes.
    async fn call(
        mut self,
        pass: Pass<'_>,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Next, CycleError> {
        let mut slice = TimeSlice::start();
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let is_older = !self.refresh().await?;
        let mut wanted = CycleResult::default();
        let is_suspended = !is_gone && self.is_suspended();
        if !is_suspended {
            self.watch(&wanted.attempts, pass).await;
        }
        if let Some(unsent) = self.memory.unsent.take() {
            let effect = self.catch_up(*unsent, patched).await?;
            if effect.is_changed {
                // The changes of this event's handlers are sent, too.
                let delivery = self.delivery(pass.patch, wanted);
                self.conclusion(patched).run(delivery, RemainingWork::default()).await?;
                return Ok(effect.next());
            }
        }
        let sync = self.sync_daemons(pass).run().await;
        let left = if is_older || is_suspended {
            RemainingWork { delays: sync.delays, looked_at: false, is_awaited: sync.is_awaited }
        } else {
            let left = self.change(&mut wanted, pass, sync).await?;
            FilterContext::end(self.memory, self.serving.uptime());
            left
        };
        if is_gone {
            return Ok(Next::Event);
        }
        slice.yield_if_over().await;
        let delivery = self.delivery(pass.patch, wanted);
        self.conclude(delivery, left, (pass.filters, patched)).await
    }

    /// Sends the remaining changes of the same event. If that causes no event, the undecided handlers come next.
    async fn send_again(
        mut self,
        delivery: Delivery,
        left: RemainingWork,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Next, CycleError> {
        let next = self.conclusion(patched).run(delivery, left).await?;
        let is_waiting = self.memory.undecided.is_some() || !self.serving.is_open();
        let is_last = next == Next::Event && self.queue.is_empty();
        Ok(if is_last && is_waiting { Next::Again } else { next })
    }

    /// Sends the changes that remain from an earlier event.
    async fn catch_up(
        &mut self,
        mut unsent: Unsent,
        patched: &mut Option<Arc<Object>>,
    ) -> Result<Applied, CycleError> {
        unsent.drop_replaced(self.serving, &self.event.object).await;
        let latest = Arc::clone(unsent.latest(&self.event.object));
        let conclusion = Conclusion { object: &latest, ..self.conclusion(patched) };
        conclusion.catch_up(unsent.delivery).await
    }

    /// Sends the changes of the cycle, or waits for delayed handlers. Waits for undecided handlers if they are due earlier and there is
    /// nothing to send, or if no event follows.
    async fn conclude(
        mut self,
        mut delivery: Delivery,
        left: RemainingWork,
        (filters, patched): (&FilterContext, &mut Option<Arc<Object>>),
    ) -> Result<Next, CycleError> {
        let mut delays = delivery.delays(self.serving.clock.now());
        delays.extend(&left.delays);
        if self.waits(filters).comes_before(&delays)
            && self.conclusion(patched).sender().is_idle(&mut delivery).await
        {
            drop(delivery);
            return Ok(self.waits(filters).run(&delays).await);
        }
        match self.conclusion(patched).run(delivery, left).await? {
            // No event follows, so the wait is for the undecided handlers.
            Next::Event => Ok(self.wait(filters).await),
            next @ (Next::Coming | Next::Settled | Next::Again | Next::Anew | Next::Wait(_)) => {
                Ok(next)
            }
        }
    }

    /// Returns the delivery of a patch and of what is to be written with it.
    fn delivery(&self, patch: &SharedPatch, wanted: CycleResult) -> Delivery {
        let (charges, patch) = (patch.take_charges(), patch.take());
        let wanted = CycleResult { patch, charges, ..wanted };
        Delivery::of(wanted, self.serving.resource.subresources.contains("status"))
    }

    fn sync_daemons<'c>(&'c mut self, pass: Pass<'c>) -> SyncDaemons<'c> {
        let Memory { background, undecided, .. } = &mut *self.memory;
        SyncDaemons {
            serving: self.serving,
            queue: self.queue,
            background,
            undecided,
            event_type: self.event.event_type,
            object: &self.event.object,
            memo: pass.memo,
            logger: self.logger,
            filters: pass.filters,
        }
    }

    fn waits<'c>(&'c self, filters: &'c FilterContext) -> UndecidedWait<'c> {
        let Cycle { serving, queue, permit, memory, .. } = self;
        UndecidedWait { serving, queue, permit, memory, filters }
    }

    async fn wait(&self, filters: &FilterContext) -> Next {
        self.waits(filters).run(&[]).await
    }

    fn conclusion<'c>(&'c mut self, patched: &'c mut Option<Arc<Object>>) -> Conclusion<'c> {
        Conclusion {
            serving: self.serving,
            queue: self.queue,
            permit: self.permit,
            memory: self.memory,
            object: &self.event.object,
            logger: self.logger,
            patched,
        }
    }

    /// Skips an object that cannot be read: its handlers would see an empty one. The event of its next version is handled as usual.
    async fn pass_over(&mut self, problem: &Unreadable) {
        let header = self.event.object.header();
        let serving = self.serving;
        reconcile::remove(&serving.services, &serving.handlers.indexing, &Owner::of(header)).await;
        self.serving.hold.indexed(header);
        self.calls.indexed();
        self.queue.show(self.calls.version);
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

    /// Returns whether no handler may be called for the object, because a user has suspended it.
    fn is_suspended(&self) -> bool {
        let persistence = &self.serving.settings.persistence;
        let is_suspended = suspended::is_suspended(persistence, self.event.object.header());
        if is_suspended {
            let text = "The object is suspended: no handlers are called until `kopf unsuspend`.";
            self.logger.log(LogLevel::Debug, text);
        }
        is_suspended
    }

    /// Returns whether a pause skips the event. Deletions are never skipped: the list after the pause shows only existing objects.
    fn is_paused(&self) -> bool {
        self.event.event_type != Some(EventType::Deleted) && self.serving.pauses.is_paused()
    }

    /// Updates the indexes before any other handler is called.
    async fn index(&mut self, memo: &Memo, filters: &FilterContext) {
        let (serving, logger) = (self.serving, self.logger);
        let undecided = self.memory.undecided.as_ref();
        let again = undecided.map(|it| it.unindexed(serving.uptime())).unwrap_or_default();
        if serving.handlers.indexing.is_empty()
            || (self.calls.indexing.is_empty() && again.is_empty())
        {
            return;
        }
        let only = match &self.calls.indexing {
            HandlerSet::All => None,
            HandlerSet::Only(ids) => Some(ids | &again),
        };
        let owner = Owner::of(self.event.object.header());
        if self.event.event_type == Some(EventType::Deleted) {
            reconcile::remove(&serving.services, &serving.handlers.indexing, &owner).await;
        } else {
            let mut failures = self.memory.unindexed.take().unwrap_or_default();
            let news = self.event.new_handlers.as_ref().map(|it| &it.indexes);
            // The earlier failures are those of another version of the function.
            news.into_iter().chain(&only).flatten().for_each(|id| failures.forget(id));
            let indexer = Indexer {
                runner: serving.runner(),
                handlers: &serving.handlers.indexing,
                only: only.as_ref(),
                cause: self.cause(&SharedPatch::default(), ObjectDetail::Index),
                memo,
                logger,
            };
            let retries = filters.retries(serving, &mut self.memory.undecided);
            {
                let mut indexing = Box::pin(indexer.run(&mut failures, retries));
                // A function that waits releases its permit to other workers.
                if time::timeout(PROMPT, &mut indexing).await.is_err() {
                    self.permit.release_while(indexing).await;
                }
            }
            self.memory.unindexed = Some(failures).filter(|it| !it.is_empty());
        }
        serving.hold.indexed(self.event.object.header());
    }

    /// Waits until the indexes are complete that handlers use.
    async fn opening(&self) -> Opening {
        let StreamContext { replaced, .. } = self.serving;
        if self.serving.is_open() {
            return Opening::Open(BTreeSet::new());
        }
        let wait = async {
            tokio::select! {
                biased; // if both are ready: nothing new starts after the end, and no replaced handlers run after a reload
                () = self.queue.ended() => Opening::Ended,
                () = replaced.cancelled() => Opening::Replaced,
                waiting = self.serving.opening() => Opening::Open(waiting),
            }
        };
        // Other workers may need the permit to complete the indexes.
        self.permit.release_while(wait).await
    }

    /// Returns whether the event may be handled as a change: it shows the present object, or the object was read from the server.
    ///
    /// # Errors
    /// If the object cannot be read from the server; the cycle is retried.
    async fn refresh(&mut self) -> Result<bool, CycleError> {
        let now = Instant::now();
        let expected = self.expected.filter(|it| now < it.deadline);
        let view = EventView {
            event_type: self.event.event_type,
            is_older: order::is_older(&self.event.object, self.memory.own),
            is_unconfirmed: self.memory.unconfirmed.is_some(),
            is_missing: self.memory.is_gone,
            is_uncertain: self.is_uncertain(),
            is_expected: expected.is_some(),
            is_followed: !self.queue.is_empty(),
        };
        if view.confirms() {
            self.memory.unconfirmed = None;
        }
        match view.freshness() {
            Freshness::Current => Ok(true),
            Freshness::Awaited => {
                // A list is not repeated: until the event of the operator's own patch arrives, the response to the patch takes its place.
                if let Some(expected) = expected.filter(|_| view.event_type.is_none()) {
                    self.event.object = Arc::clone(&expected.object);
                    self.memory.unconfirmed = Some(expected.deadline);
                }
                Ok(false)
            }
            Freshness::Followed => Ok(false),
            Freshness::Unknown => self.read().await,
        }
    }

    /// Returns whether the server may have accepted changes of handlers that were edited since.
    fn is_uncertain(&self) -> bool {
        self.memory.unsent.as_ref().is_some_and(|it| it.is_uncertain(&self.serving.handlers))
    }

    /// Reads the object from the server, unless a newer event arrives first. Returns whether the event shows the response now.
    async fn read(&mut self) -> Result<bool, CycleError> {
        let header = self.event.object.header();
        let address = Address {
            resource: &self.serving.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
        };
        let seen = order::number(&self.event.object);
        let unconfirmed = self.memory.unconfirmed.take();
        let is_uncertain = self.is_uncertain();
        let answer = tokio::select! {
            biased; // a newer event takes precedence over the response
            () = self.queue.wait(seen), if !is_uncertain => return Ok(false),
            answer = self.serving.cluster.get(address) => answer,
        };
        let object = match answer {
            Ok(object) if object.header().uid == header.uid => object,
            // The event of the deletion is still to come.
            Ok(_) => return Ok(false),
            Err(error) if error.is_missing(header.name.as_deref()) => return Ok(false),
            Err(error) => {
                self.memory.unconfirmed = unconfirmed;
                return Err(CycleError::Patch(PatchError::Api(error)));
            }
        };
        if order::is_older(&object, self.memory.own) {
            // The server itself shows an older version, as after a restored backup: the order of versions starts again.
            self.memory.own = None;
        } else if is_uncertain {
            // Events from before the operator's own request may still arrive.
            self.memory.own = order::number(&object);
        }
        self.memory.is_gone = false;
        self.event.object = Arc::new(object);
        Ok(true)
    }

    /// Handles changes: detects the change, adds or removes the finalizer, and calls the change handlers.
    async fn change(
        &mut self,
        wanted: &mut CycleResult,
        pass: Pass<'_>,
        sync: DaemonSync,
    ) -> Result<RemainingWork, CycleError> {
        let object = Arc::clone(&self.event.object);
        let persistence = &self.serving.settings.persistence;
        let Detected { change, required: needed, mut answers } = self.detect(&object, pass).await?;
        let ongoing = object.header().deletion_timestamp.is_some();
        let has_finalizer = |it: &Object| it.header().finalizers.contains(&persistence.finalizer);
        // The event may be older than the operator's own request, which has added the finalizer.
        let blocked =
            has_finalizer(&object) || self.expected.is_some_and(|it| has_finalizer(&it.object));
        let DaemonSync { required, mut delays, is_awaited } = sync;
        let required = needed.or(required);
        let is_ending = ongoing && has_finalizer(&object);
        let FinalizerState { blocked, wait } = self.held(required, blocked, is_ending);
        let is_gone = self.event.event_type == Some(EventType::Deleted);
        let hold = match required {
            // Any decision could be wrong.
            Certainty::Unknown => Hold::Keep,
            Certainty::Yes | Certainty::No => {
                plan::hold(required == Certainty::Yes, blocked, ongoing || is_gone)
            }
        };
        let change = change.filter(|_| hold == Hold::Keep);
        wanted.finalizer = self.hold(hold);
        let is_consistent = match &change {
            Some(change) if change.reason != Reason::Gone => self.consistent(pass.patch).await,
            Some(_) | None => true,
        };
        if !is_consistent {
            return Ok(RemainingWork { delays, looked_at: false, is_awaited });
        }
        let is_handled = change.as_ref().is_some_and(|it| it.reason.is_handled());
        if is_handled && !self.exclude_timers().await {
            return Ok(RemainingWork { delays, looked_at: false, is_awaited });
        }
        let looked_at = change.is_some();
        let mut slice = TimeSlice::start();
        let mut is_decided = needed != Certainty::Unknown;
        if let Some(change) = change {
            let is_held = ongoing && !delays.is_empty();
            let handled = self.handle(change, wanted, pass, (&mut answers, is_held)).await?;
            slice.yield_if_over().await;
            match handled {
                Handled::Later => return Ok(RemainingWork { delays, looked_at, is_awaited }),
                Handled::InPart => is_decided = false,
                Handled::ByAll => {}
            }
        }
        let now = self.serving.clock.now();
        let is_waiting = wanted.settling.as_ref().is_some_and(|it| !it.delays(now).is_empty());
        if hold == Hold::Keep && is_decided && !is_waiting {
            self.memory.background.iter_mut().for_each(|it| it.keep_change(None));
        }
        let is_over = delays.is_empty() && is_decided && !is_waiting;
        if !is_gone && ongoing && blocked && is_over {
            self.logger
                .log(LogLevel::Debug, "Removing the finalizer, thus allowing the actual deletion.");
            wanted.finalizer =
                Some(Transformation::AllowDeletion(persistence.finalizer.as_str().into()));
        }
        delays.extend(wait.filter(|it| !it.is_zero()));
        Ok(RemainingWork { delays, looked_at, is_awaited })
    }

    /// Detects the change, if the object is certainly in the scope of any handler, and whether any handler requires the finalizer.
    async fn detect(
        &mut self,
        object: &Arc<Object>,
        Pass { patch, memo, filters }: Pass<'_>,
    ) -> Result<Detected, CycleError> {
        let (serving, logger) = (self.serving, self.logger);
        let mut answers = filters.answers();
        let handlers = &serving.handlers;
        if handlers.changing.is_empty() {
            return Ok(Detected { change: None, required: Certainty::No, answers });
        }
        // Each step takes milliseconds if the object is large.
        let mut slice = TimeSlice::start();
        object.body();
        slice.yield_if_over().await;
        if let Some(problem) = object.problem() {
            return Err(CycleError::Unreadable(problem));
        }
        let change = cause::examine(
            &serving.settings.persistence,
            object,
            self.event.event_type,
            self.memory.is_initial(),
            &handlers.extra_fields,
        )?;
        slice.yield_if_over().await;
        if let Some(undecided) = &mut self.memory.undecided {
            undecided.retry_if_overtaken(&change);
        }
        let cause = self.cause(patch, ObjectDetail::Change(kwargs(&change)));
        let filter_caller = serving.filter_caller(&cause, memo, logger);
        let subject = Subject { object, change: Some(&change) };
        let decision = |known: &Answers| {
            let in_scope = selection::prematched(&handlers.changing, &subject, known)?;
            if in_scope == Certainty::No {
                return Ok((in_scope, Certainty::No));
            }
            Ok((in_scope, selection::requires_finalizer(&handlers.changing, &subject, known)?))
        };
        let retries = filters.retries(serving, &mut self.memory.undecided);
        let (in_scope, required) =
            filter_caller.decide_without_failures(&mut answers, retries, decision).await;
        let change = (in_scope == Certainty::Yes).then_some(change);
        Ok(Detected { change, required, answers })
    }

    /// Returns whether the operator's own patch is no longer awaited. Waits for its deadline if there is nothing to send.
    async fn consistent(&self, patch: &SharedPatch) -> bool {
        let Some(expected) = self.expected else { return true };
        if patch.peek().is_some_and(|it| !it.is_empty()) {
            return false;
        }
        tokio::select! {
            biased; // at the deadline the cycle continues, even if a newer event arrives at the same time
            () = time::sleep_until(expected.deadline) => true,
            () = self.queue.pressure() => false,
        }
    }

    pub(in crate::reactor) fn cause(
        &self,
        patch: &SharedPatch,
        detail: ObjectDetail,
    ) -> ObjectCause {
        ObjectCause {
            resource: Arc::clone(&self.serving.resource),
            object: Arc::clone(&self.event.object),
            patch: Arc::clone(patch),
            detail,
        }
    }
}
