//! One daemon or timer of one object, as those see it who let it run and stop it.

use std::{
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    task,
    time::{self, Instant},
};

use super::{
    Base,
    current_handlers::{Bound, CurrentHandler},
    moment::Moment,
    object::DaemonShared,
    work::Stage,
};
use crate::logic::{
    handler::Handler,
    outcome::LogLine,
    stopping::{self, StopReason, StopReasons, StopTimeouts},
};
use crate::ports::{Logger, LoggerKind, Stopped};
use crate::settings::Background;

/// A daemon or a timer that runs, or ran, for one object. There may be many thousands: this is all there is of one that rests.
pub struct Daemon {
    /// What it shares with the others of its resource.
    pub(super) base: Arc<Base>,
    /// What it shares with the others of its object.
    pub(super) shared: Arc<DaemonShared>,
    /// Its handler, as the generations renew it.
    current: Arc<CurrentHandler>,
    /// Its key among all daemons.
    pub(super) key: u64,
    /// The kwarg `stopped`; also tells that it has ended.
    pub(super) stopped: Stopped,
    /// When it was first asked to stop, on the clock of all daemons.
    asked: Moment,
    /// It waits to be brought forward.
    is_called: AtomicBool,
    stage: Mutex<Stage>,
}

impl Daemon {
    /// One that has not begun, and was not asked to stop.
    pub(super) fn new(
        base: Arc<Base>,
        shared: Arc<DaemonShared>,
        current: Arc<CurrentHandler>,
        key: u64,
    ) -> Self {
        Daemon {
            base,
            shared,
            current,
            key,
            stopped: Stopped::default(),
            asked: Moment::default(),
            is_called: AtomicBool::default(),
            stage: Mutex::new(Stage::first()),
        }
    }

    /// Returns its handler as it is now.
    pub fn handler(&self) -> Arc<Handler> {
        Arc::clone(&self.bound().handler)
    }

    /// Returns its handler as it is now, with what its calls can reach.
    pub(super) fn bound(&self) -> Arc<Bound> {
        self.current.get()
    }

    /// Returns whether its handler is still as it was when it started: no edit has changed or removed it.
    pub fn is_current(&self) -> bool {
        self.base.handlers.has(&self.current)
    }

    /// Whether it runs no more.
    pub(super) fn has_ended(&self) -> bool {
        self.stopped.reasons().contains(StopReason::Done)
    }

    /// Whether it ended without being asked to: then it must not start again for this object.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.reasons() == StopReasons::default().with(StopReason::Done)
    }

    /// Whether it was asked to stop and still runs.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopped.reasons().is_stopping()
    }

    /// Whether it was asked to stop, no matter whether it has.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.get().is_some()
    }

    /// Asks it to stop; tells whether it was not asked to for this reason before.
    pub(super) fn ask(self: &Arc<Self>, reason: StopReason) -> bool {
        let is_new = self.stopped.set(reason);
        if is_new {
            self.asked.set_once(self.base.daemons.uptime());
            self.call_up();
        }
        is_new
    }

    /// Has it brought forward: what it waits for may be over.
    pub(super) fn call_up(self: &Arc<Self>) {
        // Calls can outlive it, and wake it for nothing.
        if !self.has_ended() && !self.is_called.swap(true, Ordering::AcqRel) {
            self.base.daemons.call_up(Arc::clone(self));
        }
    }

    /// It is brought forward now: whoever wakes it from here on has it brought forward again.
    pub(super) fn clear_wakeup(&self) {
        self.is_called.store(false, Ordering::Release);
    }

    /// What it does from now on; gives what it did.
    pub(super) fn stage(&self, stage: Stage) -> Stage {
        // Each change is one assignment.
        mem::replace(&mut *self.stage.lock(), stage)
    }

    /// Waits until it has ended.
    pub(super) async fn end(&self) {
        self.stopped.until(StopReason::Done).await;
    }

    /// Makes one step towards its end; gives the pause before the next one, if it must be waited for.
    pub(super) async fn step(
        self: &Arc<Self>,
        reason: StopReason,
        settings: &Background,
    ) -> Option<Duration> {
        let began = Instant::now();
        let asked = self.asked.get();
        let age = asked.map(|it| self.base.daemons.uptime().saturating_sub(it)).unwrap_or_default();
        if self.ask(reason) {
            self.instant_exit(settings).await;
        }
        if self.has_ended() {
            return None;
        }
        let handler = self.handler();
        let timeouts = StopTimeouts::with(&handler, settings);
        let stage = stopping::step(&handler, timeouts, self.stopped.reasons(), age);
        let is_pressed = stage.mark.is_some();
        self.apply(&stage);
        if is_pressed {
            self.instant_exit(settings).await;
        }
        let delay = stage.delay.filter(|_| !self.has_ended())?;
        Some(delay.saturating_sub(began.elapsed()))
    }

    /// Makes all steps in a row, until it has ended or is given up. It was asked to stop before, and had its chance.
    pub(super) async fn press(self: &Arc<Self>, settings: &Background) {
        let handler = self.handler();
        let timeouts = StopTimeouts::with(&handler, settings);
        for stage in stopping::linear(&handler, timeouts) {
            if self.has_ended() {
                return;
            }
            self.apply(&stage);
            match stage.delay {
                // Even those with no time at all get the chance to see what they are told.
                Some(delay) if delay.is_zero() => self.instant_exit(settings).await,
                Some(delay) => drop(time::timeout(delay, self.end()).await),
                None => {}
            }
        }
    }

    /// Makes steps as they are due, for an object that has no cycles any more: it is gone, or not served.
    pub(super) async fn stop_detached(self: &Arc<Self>, reason: StopReason, settings: &Background) {
        while let Some(delay) = self.step(reason, settings).await {
            // The end or the pause, whichever comes first.
            drop(time::timeout(delay, self.end()).await);
        }
    }

    /// A chance to exit before anything else is done.
    async fn instant_exit(&self, settings: &Background) {
        if let Some(timeout) = settings.instant_exit_timeout {
            drop(time::timeout(timeout, self.end()).await);
            return;
        }
        for _ in 0..settings.instant_exit_zero_time_cycles {
            if self.has_ended() {
                return;
            }
            task::yield_now().await;
        }
    }

    /// Two who stop it at once, as at the deletion of an object during the operator's exit, tell of each stage once.
    fn apply(self: &Arc<Self>, stage: &stopping::Stage) {
        let is_news = stage.mark.is_none_or(|mark| self.ask(mark));
        if let Some(line) = stage.line.as_ref().filter(|_| is_news) {
            self.log(line);
        }
    }

    /// For lines about it.
    pub(super) fn logger(&self, kind: LoggerKind) -> Logger {
        Logger::of_live(kind, self.shared.live.clone()).posting(&self.bound().facilities.posts)
    }

    /// A line about its stopping.
    pub(super) fn log(&self, line: &LogLine) {
        self.logger(LoggerKind::Local).line(line, None);
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.handler(), self.stopped.reasons())
    }
}
