//! Starts and stops the daemons and timers of one object, to match its present state.
//!
//! Before: `cycle.rs`. After: `features/daemons`.

use std::{sync::Arc, time::Duration};

use super::{memory::MemoryDaemons, undecided::FilterContext};
use crate::call::{
    BackgroundCause, LiveObject, Logger, Memo, ObjectCause, ObjectDetail, SharedPatch, Stopped,
};
use crate::features::daemons;
use crate::handling::time_slice::TimeSlice;
use crate::heap;
use crate::logic::{
    background::stopping::StopReason,
    change::{
        filters::{Answers, Subject},
        selection::{self, Certainty, Selection},
        suspended,
        undecided::Undecided,
    },
    handlers::handler::Handler,
    object::{Object, essence, reason::EventType},
};
use crate::reactor::object::{context::StreamContext, queue::ObjectQueue};
use kopf_json::values;

/// The inputs for updating the daemons and timers of one object after one event.
pub(in crate::reactor) struct SyncDaemons<'a> {
    pub(in crate::reactor) serving: &'a StreamContext,
    /// The queue of newer events.
    pub(in crate::reactor) queue: &'a ObjectQueue,
    pub(in crate::reactor) background: &'a mut MemoryDaemons,
    pub(in crate::reactor) undecided: &'a mut Option<Box<Undecided>>,
    pub(in crate::reactor) event_type: Option<EventType>,
    pub(in crate::reactor) object: &'a Arc<Object>,
    pub(in crate::reactor) memo: &'a Memo,
    pub(in crate::reactor) logger: &'a Logger,
    /// The scripts that wait for indexes, and the deadline of filters.
    pub(in crate::reactor) filters: &'a FilterContext,
}

/// The requirements of the daemons and timers for the rest of the cycle.
#[derive(Debug)]
pub(in crate::reactor) struct DaemonSync {
    /// Whether daemons or timers must see the end of the object.
    pub(in crate::reactor) required: Certainty,
    /// Pauses until running daemons are checked again that must stop. The object keeps its finalizer meanwhile.
    pub(in crate::reactor) delays: Vec<Duration>,
    /// Some daemons or timers must run, but their earlier run has not stopped yet.
    pub(in crate::reactor) is_awaited: bool,
}

impl DaemonSync {
    fn new(required: Certainty) -> Self {
        DaemonSync { required, delays: Vec::new(), is_awaited: false }
    }
}

impl SyncDaemons<'_> {
    /// Starts the handlers that must run and stops those that must not.
    pub(in crate::reactor) async fn run(mut self) -> DaemonSync {
        if self.serving.handlers.spawning.is_empty() && self.background.is_none() {
            return DaemonSync::new(Certainty::No);
        }
        if let Some(background) = &mut self.background {
            background.reap();
        }
        let Selection { selected: wanted, undecided } =
            if self.is_suspended() { Selection::default() } else { self.sort().await };
        let required = is_required(&wanted, &undecided);
        // Daemons and timers of a deleted object were stopped before.
        if self.event_type == Some(EventType::Deleted) {
            return DaemonSync::new(required);
        }
        let base = &self.serving.background;
        let fresh = || heap::lasting(|| Box::new(daemons::ObjectDaemons::new(base)));
        let background = self.background.get_or_insert_with(fresh);
        let is_timed = self
            .serving
            .handlers
            .spawning
            .iter()
            .any(|it| it.follows_changes() || it.is_reconciler());
        if is_timed {
            let persistence = &self.serving.settings.persistence;
            let extra = &self.serving.handlers.extra_fields;
            let essence = essence::of(persistence, self.object.body(), extra);
            background.compare(values::fingerprint(&essence), base);
        }
        let is_wanted = |it: &Handler| wanted.iter().any(|wanted| wanted.id == it.id);
        let is_ending = self.object.header().deletion_timestamp.is_some();
        let delays = if is_ending {
            if !self.serving.pauses.is_paused() {
                let host = daemons::SpawnContext { object: self.object, memo: self.memo };
                finalize(background, &wanted, (base, host)).await;
            }
            background.stop(StopReason::ResourceDeleted, |_| true, base).await
        } else {
            // Edited daemons and timers stop; those that stop at once can start again below.
            let is_outdated = |it: &daemons::Daemon| !it.is_current();
            let mut delays = background.stop(StopReason::ScriptReloaded, is_outdated, base).await;
            background.reap();
            // During a pause, `Daemons::stop_on_pause` stops all of them at once.
            if !self.serving.pauses.is_paused() {
                let host = daemons::SpawnContext { object: self.object, memo: self.memo };
                // While filters were evaluated and others stopped, the object may have been deleted, or a handler may have ended by itself.
                let mut slice = TimeSlice::start();
                for handler in wanted.iter().filter(|it| may_start(it, base, self.object)) {
                    slice.yield_if_over().await;
                    if !self.queue.has_deletion() && !background.is_over(handler) {
                        background.spawn(base, handler, host);
                    }
                }
            }
            // Undecided ones keep their state.
            let may_stay = |it: &Handler| {
                is_wanted(it) || undecided.iter().any(|undecided| undecided.id == it.id)
            };
            let is_mismatch = |it: &daemons::Daemon| it.is_current() && !may_stay(&it.handler());
            delays.extend(background.stop(StopReason::FiltersMismatch, is_mismatch, base).await);
            delays
        };
        // Ended ones are not waited for.
        background.reap();
        let is_awaited = !is_ending && background.is_stopping(is_wanted);
        // Most objects have no daemons or timers: their state must not take memory.
        if background.is_empty() && !is_timed {
            *self.background = None;
        }
        // Handlers that do not run need not see the end of the object.
        let required = match required {
            Certainty::Unknown if is_ending && delays.is_empty() => Certainty::No,
            Certainty::Unknown if is_ending => Certainty::Yes,
            Certainty::Yes | Certainty::No | Certainty::Unknown => required,
        };
        DaemonSync { required, delays, is_awaited }
    }

    /// Returns whether nothing may run for the object.
    fn is_suspended(&self) -> bool {
        let persistence = &self.serving.settings.persistence;
        suspended::is_suspended(persistence, self.object.header())
    }

    /// Returns the handlers that match and have not finished. Their filters see the present object, not a change.
    async fn sort(&mut self) -> Selection {
        let detail = ObjectDetail::Background(BackgroundCause {
            stopped: Stopped::default(),
            live: LiveObject::new(Arc::clone(self.object)),
            children: None,
        });
        let cause = ObjectCause {
            resource: Arc::clone(&self.serving.resource),
            object: Arc::clone(self.object),
            patch: SharedPatch::default(),
            detail,
        };
        let filter_caller = self.serving.filter_caller(&cause, self.memo, self.logger);
        let subject = Subject { object: self.object, change: None };
        let handlers = &self.serving.handlers.spawning;
        let background = &*self.background;
        let is_over = |it: &Handler| background.as_ref().is_some_and(|known| known.is_over(it));
        let decision = |known: &Answers| selection::spawning(handlers, &subject, known, is_over);
        let mut answers = self.filters.answers();
        let retries = self.filters.retries(self.serving, self.undecided);
        filter_caller.decide_without_failures(&mut answers, retries, decision).await
    }
}

/// Returns whether daemons or timers must see the end of the object.
fn is_required(wanted: &[Arc<Handler>], undecided: &[Arc<Handler>]) -> Certainty {
    let needs = |all: &[Arc<Handler>]| all.iter().any(|it| it.requires_finalizer());
    match (needs(wanted), needs(undecided)) {
        (true, _) => Certainty::Yes,
        (false, true) => Certainty::Unknown,
        (false, false) => Certainty::No,
    }
}

/// Returns whether a handler may start. A handler that finalizes its object must wait for the finalizer: if the object were deleted before,
/// the work of the handler would not be undone.
fn may_start(handler: &Handler, base: &daemons::Base, object: &Object) -> bool {
    !handler.finalizes() || is_held(base, object)
}

/// Returns whether the deletion of an object waits for this operator.
fn is_held(base: &daemons::Base, object: &Object) -> bool {
    object.header().finalizers.contains(&base.settings.persistence.finalizer)
}

/// Starts the reconcile handlers that hold the deletion of the object and do not run, in their present form: they finalize it.
async fn finalize(
    background: &mut daemons::ObjectDaemons,
    wanted: &[Arc<Handler>],
    (base, host): (&Arc<daemons::Base>, daemons::SpawnContext<'_>),
) {
    let is_held = is_held(base, host.object);
    let finalizing: Vec<_> = wanted.iter().filter(|it| is_held && it.finalizes()).collect();
    if finalizing.is_empty() {
        return;
    }
    // An edited function replaces the one that is retried.
    let is_outdated = |it: &daemons::Daemon| !it.is_current() && it.handler().finalizes();
    let delays = background.stop(StopReason::ScriptReloaded, is_outdated, base).await;
    background.reap();
    if !delays.is_empty() {
        return;
    }
    for handler in finalizing {
        if !background.is_over(handler) {
            background.spawn(base, handler, host);
        }
    }
}
