//! Runs one daemon or timer from one wait to the next.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::{
    Base,
    daemon::Daemon,
    level::ReconcileLevel,
    object::DaemonShared,
    turns::Turn,
    work::{DaemonCall, DaemonProgress},
};
use crate::call::{
    BackgroundCause, CallServices, Callers, Cause, Invocation, Logger, LoggerKind, ObjectCause,
    ObjectDetail, SharedPatch, Stopped,
};
use crate::features::reconcile::NextCall;
use crate::handling::run::{self, Begun, Try};
use crate::heap;
use crate::logic::{
    background::{
        schedule::{BackgroundSchedule, ScheduleMoment, ScheduleStep},
        stopping::StopReason,
    },
    handlers::{
        function::Function,
        handler::{Handler, InitialDelay, Kind, Times},
        outcome::{self, CallEnd, Effort, LogLevel, Outcome, Raised, RaisedKind},
    },
    schedules::Cron,
    text::{duration, nanos::Nanos},
};

/// The runner of a woken daemon or timer.
pub(super) struct DaemonRunner {
    /// The daemon or timer that it runs.
    pub(super) daemon: Arc<Daemon>,
    /// Its state between attempts.
    pub(super) progress: DaemonProgress,
}

/// The next wait of a daemon.
pub(super) enum After {
    /// Nothing: it has its turn, if it needs one.
    Go(DaemonProgress, Option<Box<Turn>>),
    /// The end of this call.
    Call(DaemonProgress, Box<DaemonCall>),
    /// This moment, on the clock of all daemons.
    Rest(DaemonProgress, Nanos),
    /// Nothing: the daemon has ended.
    End,
}

/// An attempt while its call is running.
pub(super) struct DaemonAttempt {
    /// The changes that it requests.
    patch: SharedPatch,
    /// The started attempt, or the outcome that prevented its start.
    begun: Result<Begun, Box<Outcome>>,
    /// The turn of a reconcile handler or of an exclusive timer.
    pub(super) turn: Option<Box<Turn>>,
}

/// The end of a call.
pub(super) enum DaemonCallEnd {
    Returned(CallEnd),
    TimedOut,
    Cancelled,
}

impl DaemonRunner {
    /// Waits for a turn before [`DaemonRunner::go`]. After the start, all objects are due at once: the state that waits here is much smaller.
    pub(super) async fn approach(mut self) -> After {
        self.renew_schedule();
        self.lists_complete().await;
        let turn = self.turn().await;
        After::Go(self.progress, turn)
    }

    /// Continues after the end of an attempt, if there was one, until there is something to wait for.
    pub(super) async fn go(
        mut self,
        mut turn: Option<Box<Turn>>,
        ended: Option<(DaemonAttempt, DaemonCallEnd)>,
    ) -> After {
        if let Some((mut attempt, end)) = ended {
            turn = attempt.turn.take();
            if !self.conclude(attempt, Some(end)).await {
                return After::End;
            }
        }
        self.renew_schedule();
        if self.progress.schedule.is_none() && !self.begin().await {
            self.log_exit();
            return After::End;
        }
        loop {
            self.renew_schedule();
            self.lists_complete().await;
            if turn.is_none() {
                turn = self.turn().await;
            }
            let moment = self.moment();
            let Some(schedule) = &mut self.progress.schedule else { return After::End };
            match schedule.next(moment) {
                ScheduleStep::Sleep(pause) => {
                    return After::Rest(self.progress, moment.now.saturating_add(pause).into());
                }
                ScheduleStep::Plan(after) => {
                    let pause = self.pause(after).await;
                    let now = self.now();
                    if let Some(schedule) = &mut self.progress.schedule {
                        schedule.planned(pause, (moment.now, now));
                    }
                }
                ScheduleStep::Call(effort) => {
                    // The calls of daemons wait for long.
                    let mut attempt = heap::lasting(|| self.attempt(effort));
                    if let Ok(begun) = &attempt.begun
                        && !self.has_no_function()
                    {
                        let invocation = Arc::clone(&begun.invocation);
                        let call = heap::lasting(|| self.base().scripts.call(invocation));
                        let deadline = begun.time_left().map(|left| Box::pin(time::sleep(left)));
                        attempt.turn = turn.take();
                        let calling = DaemonCall { attempt, call, deadline };
                        let calling = heap::lasting(|| Box::new(calling));
                        return After::Call(self.progress, calling);
                    }
                    let is_begun = attempt.begun.is_ok();
                    let nothing =
                        is_begun.then_some(DaemonCallEnd::Returned(CallEnd::Returned(None)));
                    if !self.conclude(attempt, nothing).await {
                        return After::End;
                    }
                }
                ScheduleStep::Exit { .. } => {
                    self.log_exit();
                    return After::End;
                }
            }
        }
    }

    /// Determines when the first call is due; returns false if the daemon must not start at all.
    async fn begin(&mut self) -> bool {
        let delay = match self.handler().background.initial_delay.clone() {
            None => None,
            Some(InitialDelay::Fixed(delay)) => Some(delay),
            Some(InitialDelay::Computed(function)) => {
                match self.computed(&function, delay_of).await {
                    Some(delay) => delay,
                    None => return false,
                }
            }
        };
        self.progress.schedule = Some(BackgroundSchedule::new(&self.handler(), delay, self.now()));
        true
    }

    fn log_exit(&self) {
        let handler = self.handler();
        if handler.kind == Kind::Daemon {
            let why = if self.daemon.stopped.is_set() { "on request" } else { "on its own" };
            let text = format!("{handler} has exited {why} and will not be retried or restarted.");
            self.logger().log(LogLevel::Debug, &text);
        }
    }

    fn attempt(&mut self, effort: Effort) -> DaemonAttempt {
        let patch = self.progress.patches.as_mut().map(|it| it.begin()).unwrap_or_default();
        let now = self.base().clock.now();
        let bound = self.daemon.bound();
        let planned = Try {
            handler: self.called(&bound.handler),
            retries: effort.retries,
            started: now.saturating_sub(effort.runtime).unwrap_or(now),
            cause: Cause::Object(self.cause(Arc::clone(&patch))),
            memo: self.shared().memo.clone(),
            logger: self.logger(),
        };
        let begun = self.attempts(&bound.services).begin(planned, None);
        DaemonAttempt { patch, begun, turn: None }
    }

    /// Processes the end of an attempt; returns whether to continue.
    async fn conclude(&mut self, attempt: DaemonAttempt, end: Option<DaemonCallEnd>) -> bool {
        let ended = match end {
            Some(DaemonCallEnd::Returned(ended)) => Some(ended),
            Some(DaemonCallEnd::TimedOut) | None => None,
            Some(DaemonCallEnd::Cancelled) => {
                let text = format!("{} is cancelled. Will escalate.", self.handler());
                self.logger().log(LogLevel::Warning, &text);
                // The script may hold the patch, whose functions would keep the script alive.
                attempt.patch.forget_functions();
                return false;
            }
        };
        let mut next = NextCall::default();
        // Kept until the patch is sent.
        let (outcome, begun) = match attempt.begun {
            Ok(begun) => {
                let (outcome, requeue) = self.end_attempt(&begun, &attempt.patch, ended).await;
                next = requeue;
                (outcome, Some(begun))
            }
            Err(outcome) => (*outcome, None),
        };
        let ended = self.deliver((begun.as_ref(), attempt.patch), outcome).await;
        let Some(outcome) = ended else { return false };
        // Most daemons read neither the object nor the memo until their next call.
        self.shared().live.rest();
        self.shared().memo.rest();
        let now = self.now();
        if let Some(schedule) = &mut self.progress.schedule {
            schedule.ended(&outcome, now);
            if let Some(pause) = next.requeue.filter(|_| outcome.error.is_none()) {
                schedule.requeue(now.saturating_add(pause));
            }
        }
        self.conclude_level(&outcome)
    }

    /// Sends the changes of an attempt; returns `None` if the daemon was cancelled meanwhile.
    async fn deliver(
        &mut self,
        (begun, patch): (Option<&Begun>, SharedPatch),
        outcome: Outcome,
    ) -> Option<Outcome> {
        let mut patches = self.progress.patches.take().unwrap_or_default();
        let outcome = tokio::select! {
            biased; // a result that is ready counts, even if the daemon is cancelled at the same time
            outcome = patches.finish(self, (begun, &patch), outcome) => outcome,
            () = self.daemon.stopped.until(StopReason::DaemonCancelled) => return None,
        };
        self.progress.patches = Some(patches).filter(|it| !it.is_empty());
        Some(outcome)
    }

    pub(super) fn attempts<'a>(
        &'a self,
        services: &'a Arc<CallServices>,
    ) -> run::HandlerRunner<'a> {
        let base = self.base();
        run::HandlerRunner {
            scripts: &*base.scripts,
            clock: base.clock,
            settings: &base.settings.execution,
            services,
        }
    }

    /// Returns the pause to the first time of the cron expression after a moment of [`DaemonRunner::now`]; `None` if there is none.
    async fn pause(&self, after: Duration) -> Option<Duration> {
        let cron = match self.handler().background.times.clone()? {
            Times::Cron(cron) => cron,
            Times::Computed(function, zone) => {
                Arc::new(self.computed(&function, |it| cron_of(it, zone.as_deref())).await??)
            }
        };
        let (uptime, now) = (self.now(), self.daemon.bound().services.clock.now());
        // The moment is in the past, or slightly ahead.
        let (ahead, ago) = (after.saturating_sub(uptime), uptime.saturating_sub(after));
        let after = now.saturating_add(ahead).and_then(|it| it.saturating_sub(ago)).ok()?;
        Some(run::since(now, cron.next(after)?))
    }

    /// Calls a function for a value. Its errors are treated like those of the handler: retried, ignored, or final.
    async fn computed<T>(
        &self,
        function: &Function,
        read: impl Fn(&serde_json::Value) -> Result<Option<T>, Raised>,
    ) -> Option<Option<T>> {
        let handler = self.handler();
        let began = self.now();
        let mut retries = 0;
        loop {
            let computed = tokio::select! {
                biased; // a daemon that must stop does not start
                () = self.daemon.stopped.wait() => return None,
                computed = self.base().scripts.compute(function.clone(), None, self.invocation()) => computed,
            };
            let raised = match computed.and_then(|it| read(&it)) {
                Ok(delay) => return Some(delay),
                Err(raised) => raised,
            };
            let trace = raised.trace_from(&handler.location);
            let effort = Effort { retries, runtime: self.now().saturating_sub(began) };
            let backoff = self.base().settings.execution.default_backoff;
            let (outcome, line) =
                outcome::after(&handler, CallEnd::Raised(raised), effort, backoff);
            self.logger().line(&line, trace.as_deref());
            if outcome.last {
                return outcome.error.is_none().then_some(None);
            }
            self.sleep(outcome.delay.unwrap_or_default()).await;
            retries += 1;
        }
    }

    fn invocation(&self) -> Arc<Invocation> {
        let bound = self.daemon.bound();
        Arc::new(Invocation {
            handler: bound.handler.for_scripts(),
            attempt: None,
            cause: Cause::Object(self.cause(SharedPatch::default())),
            memo: self.shared().memo.clone(),
            logger: self.logger(),
            services: Arc::clone(&bound.services),
            children: None,
            callers: Callers::default(),
        })
    }

    fn cause(&self, patch: SharedPatch) -> ObjectCause {
        let is_finalizing = self.daemon.level().is_some_and(ReconcileLevel::is_finalizing);
        // A finalizing function must run to its end.
        let stopped = if is_finalizing { Stopped::default() } else { self.daemon.stopped.clone() };
        let live = self.shared().live.clone();
        let background = BackgroundCause { stopped, live, children: self.children() };
        ObjectCause {
            resource: Arc::clone(&self.base().resource),
            object: self.base().daemons.placeholder(),
            patch,
            detail: ObjectDetail::Background(background),
        }
    }

    /// Returns the present handler.
    pub(super) fn handler(&self) -> Arc<Handler> {
        self.daemon.handler()
    }

    /// Returns the state that the daemons of the resource share.
    pub(super) fn base(&self) -> &Arc<Base> {
        &self.daemon.base
    }

    /// Returns the state that the daemons of the object share.
    pub(super) fn shared(&self) -> &DaemonShared {
        &self.daemon.shared
    }

    /// Returns the logger for lines of the function.
    pub(super) fn logger(&self) -> Logger {
        self.daemon.logger(LoggerKind::Full)
    }

    fn moment(&self) -> ScheduleMoment {
        let stopped = self.daemon.must_end();
        ScheduleMoment { now: self.now(), changed: self.shared().changed(), stopped }
    }

    fn now(&self) -> Duration {
        self.base().daemons.uptime()
    }

    /// Sleeps this long, or until the daemon must stop.
    pub(super) async fn sleep(&self, pause: Duration) {
        tokio::select! {
            biased; // a stop ends the sleep at once
            () = self.daemon.stopped.wait() => {}
            () = time::sleep(pause) => {}
        }
    }
}

/// Parses the return value of a function of a schedule.
fn cron_of(value: &serde_json::Value, zone: Option<&str>) -> Result<Option<Cron>, Raised> {
    let message = match value {
        serde_json::Value::Null => return Ok(None),
        serde_json::Value::String(text) => match Cron::parse(text, zone) {
            Ok(cron) => return Ok(Some(cron)),
            Err(error) => error.to_string(),
        },
        serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => format!("expected a cron expression, not {value}"),
    };
    let message = format!("the function of `schedule`: {message}");
    Err(Raised { kind: RaisedKind::Arbitrary("ValueError".into()), message, trace: None })
}

/// Parses the return value of a function of an initial delay.
fn delay_of(value: &serde_json::Value) -> Result<Option<Duration>, Raised> {
    if value.is_null() {
        return Ok(None);
    }
    duration::parse(value).map(Some).ok_or_else(|| Raised {
        kind: RaisedKind::Arbitrary("TypeError".into()),
        message: format!(
            "the function of `initial_delay` must return {}, not {value}",
            duration::EXPECTED
        ),
        trace: None,
    })
}
