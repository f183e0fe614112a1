//! The life of one daemon or timer.
//!
//! There may be many thousands, most of them waiting. Who rests until its next call has no task: its [`Runner`] lies with the
//! team, which lets it go on in a new task when it is due. Who waits in a call keeps as little as possible meanwhile: what is
//! not needed for waiting is boxed and goes when its work is done.

use std::{
    any::Any,
    future, mem,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{self, Sleep};

use super::{Base, daemon::Daemon, object::Home, patches::Patches, team::Team};
use crate::handling::run::{self, Begun, Try};
use crate::logic::{
    duration,
    function::Function,
    handler::{Handler, InitialDelay, Kind},
    outcome::{self, Effort, Ended, LogLevel, Outcome, Raised, RaisedKind},
    schedule::{Moment, Schedule, Step},
    stopping::{StopReason, StopReasons},
};
use crate::ports::{
    BackgroundCause, BoxFuture, Cause, Facilities, Invocation, Logger, LoggerKind, ObjectCause,
    ObjectDetail, SharedPatch, Waiting, lock_patch,
};

/// One daemon or timer from its beginning to its end. When it is dropped, it has ended, however that came about.
pub(super) struct Runner {
    daemon: Arc<Daemon>,
    /// `None` until its initial delay is known.
    schedule: Option<Schedule>,
    /// `None` while there is nothing left of earlier attempts.
    patches: Option<Box<Patches>>,
}

/// An attempt, while its call runs.
struct Attempt {
    /// What it wants to change.
    patch: SharedPatch,
    /// Or how it ended before it began.
    begun: Result<Begun, Box<Outcome>>,
}

/// How a call came to its end.
enum End {
    Returned(Ended),
    TimedOut,
    Cancelled,
}

/// The task of one that works: lets it begin, or go on after a rest, until it rests again or has ended.
///
/// A future by hand, because most of them wait for the end of a call, and should keep nothing else then.
pub(super) struct Work {
    daemon: Arc<Daemon>,
    stage: Stage,
}

enum Stage {
    /// All but the following. Ends with a call, or with nothing more to do.
    Busy(BoxFuture<'static, Option<Calling>>),
    /// Waits for the end of a call.
    Calling(Calling),
}

struct Calling {
    runner: Box<Runner>,
    attempt: Attempt,
    call: BoxFuture<'static, Ended>,
    deadline: Option<Pin<Box<Sleep>>>,
    cancelled: Waiting,
}

impl Work {
    /// For one that has not begun, or has rested.
    pub(super) fn new(runner: Box<Runner>) -> Self {
        let daemon = Arc::clone(&runner.daemon);
        Work { daemon, stage: Stage::Busy(Box::pin(runner.go(None))) }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.stage {
                Stage::Busy(busy) => match ready!(busy.as_mut().poll(cx)) {
                    Some(calling) => self.stage = Stage::Calling(calling),
                    None => return Poll::Ready(()),
                },
                Stage::Calling(calling) => {
                    let end = ready!(calling.poll(cx));
                    let idle: BoxFuture<'static, _> = Box::pin(future::ready(None));
                    let stage = mem::replace(&mut self.stage, Stage::Busy(idle));
                    if let Stage::Calling(Calling { runner, attempt, .. }) = stage {
                        self.stage = Stage::Busy(Box::pin(runner.go(Some((attempt, end)))));
                    }
                }
            }
        }
    }
}

impl Future for Work {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.step(cx)));
        polled.unwrap_or_else(|panic| {
            let text = format!(
                "{} has ended by a bug in the operator itself: {}; please report it",
                self.daemon.handler(),
                panic_text(&*panic)
            );
            self.daemon.logger().with_kind(LoggerKind::Full).log(LogLevel::Error, &text);
            Poll::Ready(())
        })
    }
}

impl Calling {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // The order matters: who has returned has neither been late nor cancelled.
        if let Poll::Ready(ended) = self.call.as_mut().poll(cx) {
            return Poll::Ready(End::Returned(ended));
        }
        if self.deadline.as_mut().is_some_and(|it| it.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(End::TimedOut);
        }
        let is_cancelled = |it: StopReasons| it.contains(StopReason::DaemonCancelled);
        self.cancelled.poll(cx, is_cancelled).map(|()| End::Cancelled)
    }
}

impl Runner {
    /// One that has not begun.
    pub(super) fn new(daemon: Arc<Daemon>) -> Self {
        Runner { daemon, schedule: None, patches: None }
    }

    /// Goes on after this end of an attempt, if there was one, until the next call; `None` if it rests, or has ended.
    async fn go(mut self: Box<Self>, ended: Option<(Attempt, End)>) -> Option<Calling> {
        if let Some((attempt, end)) = ended
            && !self.conclude(attempt, Some(end)).await
        {
            return None;
        }
        if self.schedule.is_none() && !self.begin().await {
            self.leave();
            return None;
        }
        loop {
            let moment = self.moment();
            match self.schedule.as_mut()?.next(moment) {
                // Given back if it was asked to stop in this moment.
                Step::Sleep(pause) => self = Team::rest(self, moment.now.saturating_add(pause))?,
                Step::Call(effort) => {
                    let attempt = self.attempt(effort);
                    if let Ok(begun) = &attempt.begun {
                        let call = self.base().scripts.call(Arc::clone(&begun.invocation));
                        let deadline = begun.time_left().map(|left| Box::pin(time::sleep(left)));
                        let cancelled = self.daemon.stopped.waiting();
                        return Some(Calling { runner: self, attempt, call, deadline, cancelled });
                    }
                    if !self.conclude(attempt, None).await {
                        return None;
                    }
                }
                Step::Exit { .. } => {
                    self.leave();
                    return None;
                }
            }
        }
    }

    /// Finds out when the first call is due; tells whether it may begin at all.
    async fn begin(&mut self) -> bool {
        let delay = match self.handler().background.initial_delay.clone() {
            None => None,
            Some(InitialDelay::Fixed(delay)) => Some(delay),
            Some(InitialDelay::Computed(function)) => match self.computed(&function).await {
                Some(delay) => delay,
                None => return false,
            },
        };
        self.schedule = Some(Schedule::new(&self.handler(), delay, self.now()));
        true
    }

    fn leave(&self) {
        let handler = self.handler();
        if handler.kind == Kind::Daemon {
            let why = if self.daemon.stopped.is_set() { "on request" } else { "on its own" };
            let text = format!("{handler} has exited {why} and will not be retried or restarted.");
            self.logger().log(LogLevel::Debug, &text);
        }
    }

    fn attempt(&mut self, effort: Effort) -> Attempt {
        let patch = self.patches.as_mut().map(|it| it.begin()).unwrap_or_default();
        let now = self.base().clock.now();
        let planned = Try {
            handler: self.handler(),
            retries: effort.retries,
            started: now.saturating_sub(effort.runtime).unwrap_or(now),
            cause: Cause::Object(self.cause(Arc::clone(&patch))),
            memo: self.home().memo.clone(),
            logger: self.logger(),
        };
        let begun = self.attempts(&self.base().facilities()).begin(planned, None);
        Attempt { patch, begun }
    }

    /// What follows from the end of a call, if there was one; tells whether to go on.
    async fn conclude(&mut self, attempt: Attempt, end: Option<End>) -> bool {
        let ended = match end {
            Some(End::Returned(ended)) => Some(ended),
            Some(End::TimedOut) | None => None,
            Some(End::Cancelled) => {
                let text = format!("{} is cancelled. Will escalate.", self.handler());
                self.logger().log(LogLevel::Warning, &text);
                // Its script may hold on to the patch, whose functions would keep the script.
                lock_patch(&attempt.patch).transformations.clear();
                return false;
            }
        };
        // Kept until the patch is sent.
        let (outcome, _begun) = match attempt.begun {
            Ok(begun) => {
                let outcome = self.attempts(&begun.invocation.facilities).end(&begun, ended);
                (outcome, Some(begun))
            }
            Err(outcome) => (*outcome, None),
        };
        let Some(outcome) = self.deliver(attempt.patch, outcome).await else { return false };
        // Most look at nothing until their next call.
        self.home().live.rest();
        let now = self.now();
        if let Some(schedule) = &mut self.schedule {
            schedule.ended(&outcome, now);
        }
        true
    }

    /// Sends what an attempt wants to change; `None` if it was cancelled meanwhile.
    async fn deliver(&mut self, patch: SharedPatch, outcome: Outcome) -> Option<Outcome> {
        let mut patches = self.patches.take().unwrap_or_default();
        let outcome = tokio::select! {
            biased; // as above
            outcome = patches.finish(self, &patch, outcome) => outcome,
            () = self.daemon.stopped.until(StopReason::DaemonCancelled) => return None,
        };
        self.patches = Some(patches).filter(|it| !it.is_empty());
        Some(outcome)
    }

    fn attempts<'a>(&'a self, facilities: &'a Arc<Facilities>) -> run::Runner<'a> {
        let base = self.base();
        run::Runner {
            scripts: &*base.scripts,
            clock: base.clock,
            settings: &base.settings.execution,
            facilities,
        }
    }

    /// Errors of the function are those of the handler: retried, ignored, or final.
    async fn computed(&self, function: &Function) -> Option<Option<Duration>> {
        let handler = self.handler();
        let began = self.now();
        let mut retries = 0;
        loop {
            let computed = tokio::select! {
                biased; // what must stop does not begin
                () = self.daemon.stopped.wait() => return None,
                computed = self.base().scripts.compute(function.clone(), None, self.invocation()) => computed,
            };
            let raised = match computed.and_then(|it| delay_of(&it)) {
                Ok(delay) => return Some(delay),
                Err(raised) => raised,
            };
            let trace = raised.trace.clone();
            let effort = Effort { retries, runtime: self.now().saturating_sub(began) };
            let backoff = self.base().settings.execution.default_backoff;
            let (outcome, line) = outcome::after(&handler, Ended::Raised(raised), effort, backoff);
            self.logger().line(&line, trace.as_deref());
            if outcome.last {
                return outcome.error.is_none().then_some(None);
            }
            self.sleep(outcome.delay.unwrap_or_default()).await;
            retries += 1;
        }
    }

    fn invocation(&self) -> Arc<Invocation> {
        Arc::new(Invocation {
            handler: self.handler().inside(),
            attempt: None,
            cause: Cause::Object(self.cause(SharedPatch::default())),
            memo: self.home().memo.clone(),
            logger: self.logger(),
            facilities: self.base().facilities(),
            children: None,
        })
    }

    fn cause(&self, patch: SharedPatch) -> ObjectCause {
        let stopped = self.daemon.stopped.clone();
        let background = BackgroundCause { stopped, live: self.home().live.clone() };
        ObjectCause {
            resource: Arc::clone(&self.base().resource),
            object: self.base().team.nobody(),
            patch,
            detail: ObjectDetail::Background(background),
        }
    }

    /// How others see it.
    pub(super) fn daemon(&self) -> &Arc<Daemon> {
        &self.daemon
    }

    /// What it is declared as in this moment.
    pub(super) fn handler(&self) -> Arc<Handler> {
        self.daemon.handler()
    }

    /// What it shares with the others of its resource.
    pub(super) fn base(&self) -> &Arc<Base> {
        &self.daemon.base
    }

    /// What it shares with the others of its object.
    pub(super) fn home(&self) -> &Home {
        &self.daemon.home
    }

    /// For the lines of its function.
    pub(super) fn logger(&self) -> Logger {
        self.daemon.logger().with_kind(LoggerKind::Full)
    }

    fn moment(&self) -> Moment {
        let stopped = self.daemon.stopped.is_set();
        Moment { now: self.now(), changed: self.home().changed(), stopped }
    }

    fn now(&self) -> Duration {
        self.base().team.uptime()
    }

    /// Sleeps that long, or until it must stop.
    pub(super) async fn sleep(&self, pause: Duration) {
        tokio::select! {
            biased; // what must stop has no time
            () = self.daemon.stopped.wait() => {}
            () = time::sleep(pause) => {}
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.daemon.base.team.leave(&self.daemon);
    }
}

/// What a function of an initial delay may return.
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

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}
