//! One daemon or timer of one object, as seen by the code that starts and stops it.

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
    current_handlers::{BoundHandler, CurrentHandler},
    exclusion::ChangeLock,
    level::ReconcileLevel,
    moment::AtomicMoment,
    object::DaemonShared,
    work::DaemonStage,
};
use crate::call::{Logger, LoggerKind, Stopped};
use crate::logic::{
    background::stopping::{self, StopReason, StopReasons, StopTimeouts},
    handlers::{
        handler::{Handler, Times},
        outcome::LogLine,
    },
};
use crate::settings::BackgroundSettings;

/// A daemon or timer of one object, running or ended. There may be many thousands: a waiting one has no other state than this.
pub struct Daemon {
    /// Shared by the daemons of its resource.
    pub(super) base: Arc<Base>,
    /// Shared by the daemons of its object.
    pub(super) shared: Arc<DaemonShared>,
    /// Its handler, which each generation replaces.
    current: Arc<CurrentHandler>,
    /// Its key among all daemons.
    pub(super) key: DaemonKey,
    /// The kwarg `stopped`; it also shows whether the daemon has ended.
    pub(super) stopped: Stopped,
    /// The time when the daemon was first requested to stop, on the clock of all daemons.
    stop_requested: AtomicMoment,
    /// Whether the daemon is in the driver's queue.
    is_queued: AtomicBool,
    /// Whether the object has changed, and with it the times of the next calls.
    is_outdated: AtomicBool,
    stage: Mutex<DaemonStage>,
    special: Option<Box<Special>>,
}

/// The identity of a daemon among all that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DaemonKey {
    /// Its index, which another one can get later.
    pub(super) index: u32,
    /// Its number in the order of their starts; after four billion, numbers start again.
    pub(super) number: u32,
}

/// The state that only some daemons and timers have.
pub(super) enum Special {
    /// Of a reconcile handler: requests of calls, and the end of its object.
    Reconciler(Box<ReconcileLevel>),
    /// Of an exclusive timer: the lock of its object.
    Exclusive(ChangeLock),
}

impl Daemon {
    /// Creates a daemon that has not started and was not requested to stop.
    pub(super) fn new(
        (base, shared, current, key): (
            Arc<Base>,
            Arc<DaemonShared>,
            Arc<CurrentHandler>,
            DaemonKey,
        ),
        special: Option<Special>,
    ) -> Self {
        Daemon {
            base,
            shared,
            current,
            key,
            stopped: Stopped::default(),
            stop_requested: AtomicMoment::default(),
            is_queued: AtomicBool::default(),
            is_outdated: AtomicBool::default(),
            stage: Mutex::new(DaemonStage::first()),
            special: special.map(Box::new),
        }
    }

    /// Returns the present handler.
    pub fn handler(&self) -> Arc<Handler> {
        Arc::clone(&self.bound().handler)
    }

    /// Returns the present handler with the services of its calls.
    pub(super) fn bound(&self) -> Arc<BoundHandler> {
        self.current.get()
    }

    /// Returns whether the handler is the one that the daemon was started with: no edit has changed or removed it.
    pub fn is_current(&self) -> bool {
        self.base.handlers.has(&self.current)
    }

    /// Returns whether the daemon has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.stopped.reasons().contains(StopReason::Done)
    }

    /// Returns the state of a reconcile handler.
    pub(super) fn level(&self) -> Option<&ReconcileLevel> {
        match self.special.as_deref()? {
            Special::Reconciler(level) => Some(level),
            Special::Exclusive(_) => None,
        }
    }

    /// Returns the lock that an exclusive timer holds while it is called.
    pub(super) fn change_lock(&self) -> Option<&ChangeLock> {
        match self.special.as_deref()? {
            Special::Exclusive(lock) => Some(lock),
            Special::Reconciler(_) => None,
        }
    }

    /// Returns whether the daemon has ended without a request to stop: it must not start again for this object.
    pub(super) fn is_over(&self) -> bool {
        let is_alone = self.stopped.reasons() == StopReasons::default().with(StopReason::Done);
        is_alone || self.level().is_some_and(ReconcileLevel::is_finalized)
    }

    /// Returns whether the daemon was requested to stop and is still running.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopped.reasons().is_stopping()
    }

    /// Returns whether the daemon was requested to stop, whether or not it has ended.
    pub(super) fn was_stop_requested(&self) -> bool {
        self.stop_requested.get().is_some()
    }

    /// Requests the daemon to stop; returns whether the reason is new.
    pub(super) fn request_stop(self: &Arc<Self>, reason: StopReason) -> bool {
        let is_new = self.stopped.set(reason);
        if is_new {
            self.stop_requested.set_once(self.base.daemons.uptime());
            self.enqueue();
        }
        is_new
    }

    /// Wakes the daemon: its wait may be over.
    pub(super) fn enqueue(self: &Arc<Self>) {
        // Calls can outlive the daemon and wake it although it has ended.
        if !self.has_ended() && !self.is_queued.swap(true, Ordering::AcqRel) {
            self.base.daemons.enqueue(Arc::clone(self));
        }
    }

    /// Marks the times of a timer as outdated if a function computes them, and wakes the timer.
    pub(super) fn plan_again(self: &Arc<Self>) {
        if matches!(self.handler().background.times, Some(Times::Computed(..))) {
            self.is_outdated.store(true, Ordering::Release);
            self.enqueue();
        }
    }

    /// Returns whether the times must be determined again.
    pub(super) fn take_change(&self) -> bool {
        self.is_outdated.swap(false, Ordering::AcqRel)
    }

    /// Marks the daemon as taken from the driver's queue: the next wake-up queues it again.
    pub(super) fn clear_wakeup(&self) {
        self.is_queued.store(false, Ordering::Release);
    }

    /// Sets the present stage; returns the previous one.
    pub(super) fn replace_stage(&self, stage: DaemonStage) -> DaemonStage {
        // Each change is one assignment.
        mem::replace(&mut *self.stage.lock(), stage)
    }

    /// Waits until the daemon has ended.
    pub(super) async fn end(&self) {
        self.stopped.until(StopReason::Done).await;
    }

    /// Makes one step towards the daemon's end; returns the pause until the next step, if one is needed.
    pub(super) async fn stop_step(
        self: &Arc<Self>,
        reason: StopReason,
        settings: &BackgroundSettings,
    ) -> Option<Duration> {
        let began = Instant::now();
        let requested = self.stop_requested.get();
        let age =
            requested.map(|it| self.base.daemons.uptime().saturating_sub(it)).unwrap_or_default();
        if self.request_stop(reason) {
            self.instant_exit(settings).await;
        }
        if self.has_ended() {
            return None;
        }
        let handler = self.handler();
        let timeouts = StopTimeouts::with(&handler, settings);
        let stage = stopping::step(&handler, timeouts, self.stopped.reasons(), age);
        let is_escalated = stage.mark.is_some();
        self.apply(&stage);
        if is_escalated {
            self.instant_exit(settings).await;
        }
        let delay = stage.delay.filter(|_| !self.has_ended())?;
        Some(delay.saturating_sub(began.elapsed()))
    }

    /// Makes all steps one after another, until the daemon has ended or is given up. The daemon was requested to stop before, and had time
    /// for an instant exit.
    pub(super) async fn escalate(self: &Arc<Self>, settings: &BackgroundSettings) {
        let handler = self.handler();
        let timeouts = StopTimeouts::with(&handler, settings);
        for stage in stopping::linear(&handler, timeouts) {
            if self.has_ended() {
                return;
            }
            self.apply(&stage);
            match stage.delay {
                // Daemons without a time limit, too, get time to notice the reason.
                Some(delay) if delay.is_zero() => self.instant_exit(settings).await,
                Some(delay) => drop(time::timeout(delay, self.end()).await),
                None => {}
            }
        }
    }

    /// Makes the steps as they are due, for an object without further cycles: it is deleted, or no longer served.
    pub(super) async fn stop_detached(
        self: &Arc<Self>,
        reason: StopReason,
        settings: &BackgroundSettings,
    ) {
        while let Some(delay) = self.stop_step(reason, settings).await {
            // The end or the pause, whichever comes first.
            drop(time::timeout(delay, self.end()).await);
        }
    }

    /// Gives the daemon time for an instant exit, before any further step.
    async fn instant_exit(&self, settings: &BackgroundSettings) {
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

    /// Applies one stage of stopping. Two concurrent stops, such as a deletion during the operator's exit, log each stage once.
    fn apply(self: &Arc<Self>, stage: &stopping::StoppingStage) {
        let is_news = stage.mark.is_none_or(|mark| self.request_stop(mark));
        if let Some(line) = stage.line.as_ref().filter(|_| is_news) {
            self.log(line);
        }
    }

    /// Returns a logger for lines about the daemon.
    pub(super) fn logger(&self, kind: LoggerKind) -> Logger {
        Logger::of_live(kind, self.shared.live.clone()).posting(&self.bound().services.posts)
    }

    /// Logs a line about stopping the daemon.
    pub(super) fn log(&self, line: &LogLine) {
        self.logger(LoggerKind::Local).line(line, None);
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.handler(), self.stopped.reasons())
    }
}
