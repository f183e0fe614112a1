//! The calls of a reconcile handler: when they begin, how their results are applied, and the end of the object.

use std::{future, pin::pin, sync::Arc, task::Poll, time::Duration};

use futures::future::Either;
use tokio::time;

use super::{
    current_handlers::BoundHandler, daemon::Daemon, level::ReconcileLevel, runner::DaemonRunner,
    turns::Turn,
};
use crate::call::{CallReason, Logger, SeenChildren, SharedPatch};
use crate::features::{
    indexes::Ids,
    reconcile::{NextCall, Reconciliation},
};
use crate::handling::run::{self, Begun};
use crate::logic::{
    background::{schedule::BackgroundSchedule, stopping::StopReason},
    handlers::{
        handler::Handler,
        outcome::{CallEnd, Outcome, Raised, RaisedKind},
        relations::RelationIds,
    },
    object::Object,
    reconcile,
};
use crate::settings::ExecutionSettings;

/// The longest pause after errors, and the first one.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// The interval of checks whether the children are listed.
const LISTING_CHECK: Duration = Duration::from_secs(1);

/// Reasons to stop although the object still has to be finalized.
const URGENT: [StopReason; 5] = [
    StopReason::OperatorExiting,
    StopReason::OperatorPausing,
    StopReason::ScriptReloaded,
    StopReason::DaemonCancelled,
    StopReason::DaemonAbandoned,
];

impl Daemon {
    /// Requests a call because the object has changed, if the daemon is a reconcile handler.
    pub(super) fn request_call(&self) {
        if let Some(level) = self.level() {
            level.call.request(CallReason::Object);
        }
    }

    /// Returns whether the daemon must end, rather than finalize its object.
    pub(super) fn must_end(&self) -> bool {
        let reasons = self.stopped.reasons();
        let is_finalizing = self.level().is_some_and(ReconcileLevel::is_finalizing);
        if is_finalizing {
            return URGENT.iter().any(|it| reasons.contains(*it));
        }
        !reasons.is_empty()
    }
}

impl DaemonRunner {
    /// Begins to finalize the object if it is being deleted and the handler holds the deletion. Returns whether it has begun now.
    pub(super) fn begin_finalization(&self) -> bool {
        let Some(level) = self.daemon.level() else { return false };
        let reasons = self.daemon.stopped.reasons();
        if !level.is_running()
            || !reasons.contains(StopReason::ResourceDeleted)
            || URGENT.iter().any(|it| reasons.contains(*it))
            || !self.handler().finalizes()
        {
            return false;
        }
        let object = self.shared().live.get();
        let is_held =
            object.header().finalizers.contains(&self.base().settings.persistence.finalizer);
        if object.header().deletion_timestamp.is_none() || !is_held {
            return false;
        }
        level.finalize();
        true
    }

    /// Begins to finalize, or responds to events that have requested a call.
    pub(super) fn renew_schedule(&mut self) {
        let Some(level) = self.daemon.level() else { return };
        let now = self.base().daemons.uptime();
        if self.begin_finalization() {
            self.progress.schedule = Some(BackgroundSchedule::new(&self.handler(), None, now));
        }
        let not_before = level.not_before();
        if self.progress.schedule.is_some() {
            let reasons = level.call.take();
            let is_needless = level.is_finalizing()
                || (reasons.are_children() && self.shows_what_was_applied(level));
            let is_needed = !reasons.is_empty() && !is_needless;
            if let Some(schedule) = self.progress.schedule.as_mut().filter(|_| is_needed) {
                if reasons.has(CallReason::Object) {
                    schedule.renew();
                }
                schedule.wake(now);
            }
        }
        if let Some(schedule) = &mut self.progress.schedule
            && !level.is_finalizing()
        {
            schedule.wait_until(not_before);
        }
    }

    /// Returns whether the watch only shows the children as the last call has left them, which that call has not read.
    fn shows_what_was_applied(&self, level: &ReconcileLevel) -> bool {
        let (object, logger) = (self.shared().live.get(), self.logger());
        let mut memory = level.take_memory();
        let bound = self.daemon.bound();
        let is_applied = self.reconciliation(&bound, &object, &logger).is_settled(&mut memory);
        level.set_memory(memory);
        is_applied
    }

    /// Returns the handler whose function is called.
    pub(super) fn called(&self, handler: &Arc<Handler>) -> Arc<Handler> {
        let is_finalizing = self.daemon.level().is_some_and(ReconcileLevel::is_finalizing);
        let finalizing = is_finalizing.then(|| handler.finalizing()).flatten();
        finalizing.unwrap_or_else(|| Arc::clone(handler))
    }

    /// Returns whether the object is finalized without a function.
    pub(super) fn has_no_function(&self) -> bool {
        let is_finalizing = self.daemon.level().is_some_and(ReconcileLevel::is_finalizing);
        is_finalizing && self.handler().reconcile.as_ref().is_some_and(|it| it.finalize.is_none())
    }

    /// Ends an attempt: applies the result of its function first.
    pub(super) async fn end_attempt(
        &self,
        begun: &Begun,
        patch: &SharedPatch,
        ended: Option<CallEnd>,
    ) -> (Outcome, NextCall) {
        let attempts = self.attempts(&begun.invocation.services);
        let Some(level) = self.daemon.level() else {
            return (attempts.end(begun, ended), NextCall::default());
        };
        let (ended, next) = match ended {
            Some(ended) => {
                let (ended, next) = self.reconcile(level, patch, ended).await;
                (Some(ended), next)
            }
            None => (None, NextCall::default()),
        };
        let is_read = begun.invocation.cause.children().is_some_and(|it| it.used_tree().is_some());
        level.set_settled(matches!(ended, Some(CallEnd::Returned(_))) && !is_read);
        let retries = begun.invocation.attempt.map_or(0, |it| it.retry);
        let settings = with_backoff(&self.base().settings.execution, retries);
        let outcome = run::HandlerRunner { settings: &settings, ..attempts }.end(begun, ended);
        let took = begun.invocation.attempt.map(|it| {
            let ran = run::since(it.started, self.base().clock.now());
            ran.saturating_sub(it.runtime)
        });
        level.call.queue().worked(took.unwrap_or_default());
        if !outcome.last {
            level.call.queue().retried();
        }
        (outcome, next)
    }

    /// Returns whether to continue after an attempt: an object that is finalized needs no more.
    pub(super) fn conclude_level(&self, outcome: &Outcome) -> bool {
        let level = self.daemon.level().filter(|it| it.is_finalizing() && outcome.last);
        if let Some(level) = level {
            level.finalized();
        }
        level.is_none()
    }

    /// Waits until the lists of the children and of the watched kinds are complete, or until the daemon must end.
    pub(super) async fn lists_complete(&self) {
        if self.daemon.level().is_none() {
            return;
        }
        let readiness = &self.base().readiness;
        if readiness.is_complete() {
            return;
        }
        let RelationIds { children, watched, .. } = &self.daemon.bound().relations;
        let ids = children.iter().chain(watched).cloned().collect::<Ids>();
        while readiness.lacks(&ids) && !self.daemon.must_end() {
            tokio::select! {
                biased; // the order makes no difference: both lead to another check
                () = readiness.changes() => {}
                () = time::sleep(LISTING_CHECK) => {}
            }
        }
    }

    /// Waits for the turn of a call; there are none for daemons and most timers, which wait most of the time.
    pub(super) async fn turn(&self) -> Option<Box<Turn>> {
        let turns = &self.base().daemons.turns;
        let mut turn = pin!(match (self.daemon.change_lock(), self.daemon.level()) {
            (Some(lock), _) => Either::Left(Turn::exclusive(lock)),
            (None, Some(_)) => Either::Right(turns.next()),
            (None, None) => return None,
        });
        // A request to stop polls this, too.
        future::poll_fn(|cx| {
            if self.daemon.must_end() { Poll::Ready(None) } else { turn.as_mut().poll(cx) }
        })
        .await
    }

    /// Returns the source of `ctx.children`.
    pub(super) fn children(&self) -> Option<Arc<SeenChildren>> {
        self.daemon.level()?;
        let bound = self.daemon.bound();
        let object = self.shared().live.get();
        let logger = self.logger();
        Some(Arc::new(self.reconciliation(&bound, &object, &logger).children()))
    }

    fn reconciliation<'a>(
        &'a self,
        bound: &'a BoundHandler,
        object: &'a Object,
        logger: &'a Logger,
    ) -> Reconciliation<'a> {
        let base = self.base();
        Reconciliation {
            handler: &bound.handler,
            services: &bound.services,
            relations: &bound.relations,
            cluster: &*base.cluster,
            resource: &base.resource,
            object,
            namespaces: base.namespaces.as_deref(),
            logger,
            now: base.daemons.uptime(),
        }
    }

    /// Applies the result of a reconcile function. Returns the end of the call: an error if the result could not be applied.
    pub(super) async fn reconcile(
        &self,
        level: &ReconcileLevel,
        patch: &SharedPatch,
        ended: CallEnd,
    ) -> (CallEnd, NextCall) {
        let result = match ended {
            CallEnd::Returned(result) => result,
            CallEnd::Keyed(_) => None,
            CallEnd::Raised(_) => return (ended, NextCall::default()),
        };
        let bound = self.daemon.bound();
        let (object, logger) = (self.shared().live.get(), self.logger());
        let reconciliation = self.reconciliation(&bound, &object, &logger);
        let mut memory = level.take_memory();
        let done = {
            let working = pin!(async {
                if level.is_finalizing() {
                    reconcile::check_finalized(result.as_ref())?;
                    reconciliation.delete_unowned(&memory).await?;
                    return Ok(NextCall::default());
                }
                reconciliation.conclude(result, &mut memory, patch).await
            });
            tokio::select! {
                biased; // a cancellation drops the requests; what has ended before counts
                done = bound.services.leadership.while_acting(working) => done,
                () = self.daemon.stopped.until(StopReason::DaemonCancelled) => Ok(NextCall::default()),
            }
        };
        level.set_memory(memory);
        match done {
            Ok(next) => (CallEnd::Returned(None), next),
            Err(problem) => {
                let kind = RaisedKind::Arbitrary("ReconcileError".into());
                let raised = Raised { kind, message: problem, trace: None };
                (CallEnd::Raised(raised), NextCall::default())
            }
        }
    }
}

/// Returns the settings of attempts with the pause after an arbitrary error: it doubles with each attempt.
pub(super) fn with_backoff(settings: &ExecutionSettings, retries: u64) -> ExecutionSettings {
    let (first, last) = BACKOFF;
    let doubled = u32::try_from(retries.min(16)).map_or(last, |it| first.saturating_mul(1 << it));
    ExecutionSettings { default_backoff: doubled.min(last), ..settings.clone() }
}
