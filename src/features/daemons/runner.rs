//! The life of one daemon or timer, in a task of its own.
//!
//! There may be many thousands, most of them waiting: what is not needed for waiting is boxed and goes when its work is done.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use tokio::time;

use super::{Base, daemon::Daemon, object::Changed, patches::Patches};
use crate::handling::run::{self, Try};
use crate::logic::{
    duration,
    function::Function,
    handler::{InitialDelay, Kind},
    outcome::{self, Effort, Ended, LogLevel, Outcome, Raised, RaisedKind},
    schedule::{Moment, Schedule, Step},
    stopping::StopReason,
};
use crate::ports::{
    BackgroundCause, Cause, Invocation, LiveObject, Logger, LoggerKind, Memo, ObjectCause,
    ObjectDetail, SharedPatch,
};

/// One daemon or timer, before it begins.
pub(super) struct Runner {
    /// What it shares with the others of its resource.
    pub(super) base: Arc<Base>,
    /// How others see it.
    pub(super) daemon: Arc<Daemon>,
    /// What it sees of the object.
    pub(super) live: LiveObject,
    /// When the essence of the object changed last.
    pub(super) changed: Changed,
    /// The memo of the object.
    pub(super) memo: Memo,
}

impl Runner {
    /// Lives until it has nothing more to do, or until it must stop and does.
    pub(super) async fn live(self) {
        let life = AssertUnwindSafe(self.run()).catch_unwind();
        if let Err(panic) = life.await {
            let text = format!(
                "{} has ended by a bug in the operator itself: {}; please report it",
                self.daemon.handler,
                panic_text(&*panic)
            );
            self.logger().log(LogLevel::Error, &text);
        }
    }

    async fn run(&self) {
        let handler = &self.daemon.handler;
        if let Some(delay) = self.initial_delay().await {
            let mut schedule = Schedule::new(handler, delay, self.now());
            let mut patches = Patches::default();
            loop {
                match schedule.next(self.moment()) {
                    Step::Sleep(pause) => self.sleep(pause).await,
                    Step::Call(effort) => {
                        let attempt = Box::pin(self.attempt(effort, &mut patches));
                        let Some(outcome) = attempt.await else { return };
                        schedule.ended(&outcome, self.now());
                    }
                    Step::Exit { .. } => break,
                }
            }
        }
        if handler.kind == Kind::Daemon {
            let why = if self.daemon.stopped.is_set() { "on request" } else { "on its own" };
            let text = format!("{handler} has exited {why} and will not be retried or restarted.");
            self.logger().log(LogLevel::Debug, &text);
        }
    }

    /// One attempt with its patch; `None` if it was cancelled.
    async fn attempt(&self, effort: Effort, patches: &mut Patches) -> Option<Outcome> {
        let handler = &self.daemon.handler;
        let patch: SharedPatch = patches.begin();
        let now = self.base.clock.now();
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: effort.retries,
            started: now.saturating_sub(effort.runtime).unwrap_or(now),
            cause: Cause::Object(self.cause(Arc::clone(&patch))),
            memo: self.memo.clone(),
            logger: self.logger(),
        };
        let runner = run::Runner {
            scripts: &*self.base.scripts,
            clock: self.base.clock,
            settings: &self.base.settings.execution,
            facilities: &self.base.facilities,
        };
        let outcome = tokio::select! {
            biased; // who has returned is not cancelled any more
            outcome = runner.run(attempt) => outcome,
            () = self.daemon.stopped.until(StopReason::DaemonCancelled) => {
                let text = format!("{handler} is cancelled. Will escalate.");
                self.logger().log(LogLevel::Warning, &text);
                return None;
            }
        };
        tokio::select! {
            biased; // as above
            outcome = Box::pin(patches.finish(self, &patch, outcome)) => Some(outcome),
            () = self.daemon.stopped.until(StopReason::DaemonCancelled) => None,
        }
    }

    /// The delay before the first call, if there is any; `None` if it must not even begin.
    async fn initial_delay(&self) -> Option<Option<Duration>> {
        match &self.daemon.handler.background.initial_delay {
            None => Some(None),
            Some(InitialDelay::Fixed(delay)) => Some(Some(*delay)),
            Some(InitialDelay::Computed(function)) => Box::pin(self.computed(function)).await,
        }
    }

    /// Errors of the function are those of the handler: retried, ignored, or final.
    async fn computed(&self, function: &Function) -> Option<Option<Duration>> {
        let handler = &self.daemon.handler;
        let began = self.now();
        let mut retries = 0;
        loop {
            let computed = tokio::select! {
                biased; // what must stop does not begin
                () = self.daemon.stopped.wait() => return None,
                computed = self.base.scripts.compute(function.clone(), None, self.invocation()) => computed,
            };
            let raised = match computed.and_then(|it| delay_of(&it)) {
                Ok(delay) => return Some(delay),
                Err(raised) => raised,
            };
            let trace = raised.trace.clone();
            let effort = Effort { retries, runtime: self.now().saturating_sub(began) };
            let backoff = self.base.settings.execution.default_backoff;
            let (outcome, line) = outcome::after(handler, Ended::Raised(raised), effort, backoff);
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
            handler: self.daemon.handler.inside(),
            attempt: None,
            cause: Cause::Object(self.cause(SharedPatch::default())),
            memo: self.memo.clone(),
            logger: self.logger(),
            facilities: Arc::clone(&self.base.facilities),
            children: None,
        })
    }

    fn cause(&self, patch: SharedPatch) -> ObjectCause {
        let background =
            BackgroundCause { stopped: self.daemon.stopped.clone(), live: self.live.clone() };
        ObjectCause {
            resource: Arc::clone(&self.base.resource),
            object: self.base.team.nobody(),
            patch,
            detail: ObjectDetail::Background(background),
        }
    }

    /// For the lines of its function.
    pub(super) fn logger(&self) -> Logger {
        self.daemon.logger().with_kind(LoggerKind::Full)
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            changed: self.changed.get(),
            stopped: self.daemon.stopped.is_set(),
        }
    }

    fn now(&self) -> Duration {
        self.base.team.uptime()
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
