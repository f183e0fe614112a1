//! The present stage of a daemon or timer, and its transitions.
//!
//! There may be many thousands of daemons, most of them waiting. So none has a task: one task (`driver.rs`) runs those that are
//! woken. A daemon that waits for its next call keeps only its state between attempts; during a call, also the call. A boxed
//! [`DaemonRunner`] does everything else, and is freed afterwards.

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tokio::time::Sleep;

use super::{
    daemon::Daemon,
    patches::Patches,
    runner::{After, DaemonAttempt, DaemonCallEnd, DaemonRunner},
};
use crate::call::LoggerKind;
use crate::logic::{
    background::{schedule::BackgroundSchedule, stopping::StopReason},
    handlers::outcome::{CallEnd, LogLevel},
    text::nanos::Nanos,
};
use crate::ports::BoxFuture;

/// The state between attempts.
#[derive(Default)]
pub(super) struct DaemonProgress {
    /// `None` until the initial delay is known.
    pub(super) schedule: Option<BackgroundSchedule>,
    /// The unsent changes of earlier attempts, if any.
    pub(super) patches: Option<Box<Patches>>,
}

/// The present stage of a daemon.
pub(super) enum DaemonStage {
    /// Waits until this moment, on the clock of all daemons.
    Resting(DaemonProgress, Nanos),
    /// Waits for the end of a call.
    Calling(DaemonProgress, Box<DaemonCall>),
    /// Runs a future of its runner: the wait for a turn, or the steps before and after a call.
    Busy(BoxFuture<'static, After>),
    /// Has ended, or is being run.
    Taken,
}

/// A running call, which the driver polls until it returns or exceeds its deadline.
pub(super) struct DaemonCall {
    pub(super) attempt: DaemonAttempt,
    pub(super) call: BoxFuture<'static, CallEnd>,
    pub(super) deadline: Option<Pin<Box<Sleep>>>,
}

impl DaemonStage {
    /// Returns the stage of a daemon that has not started and may start at once.
    pub(super) fn first() -> Self {
        DaemonStage::Resting(DaemonProgress::default(), Nanos::ZERO)
    }

    /// Runs until the daemon waits; returns `None` if it has ended.
    fn step(mut self, daemon: &Arc<Daemon>, cx: &mut Context<'_>) -> Option<DaemonStage> {
        let runner = |progress| DaemonRunner { daemon: Arc::clone(daemon), progress };
        let go =
            |progress, turn, ended| DaemonStage::Busy(Box::pin(runner(progress).go(turn, ended)));
        loop {
            self = match self {
                DaemonStage::Resting(progress, due) => {
                    if !daemon.unschedule_if_due(due) {
                        return Some(DaemonStage::Resting(progress, due));
                    }
                    match daemon.level() {
                        Some(_) => DaemonStage::Busy(Box::pin(runner(progress).approach())),
                        None => go(progress, None, None),
                    }
                }
                DaemonStage::Calling(progress, mut calling) => match calling.poll(daemon, cx) {
                    Poll::Pending => return Some(DaemonStage::Calling(progress, calling)),
                    Poll::Ready(end) => go(progress, None, Some((calling.attempt, end))),
                },
                DaemonStage::Busy(mut busy) => match busy.as_mut().poll(cx) {
                    Poll::Pending => return Some(DaemonStage::Busy(busy)),
                    Poll::Ready(After::Go(progress, turn)) => go(progress, turn, None),
                    Poll::Ready(After::Rest(progress, due)) => {
                        daemon.base.daemons.schedule(due, daemon.key);
                        DaemonStage::Resting(progress, due)
                    }
                    Poll::Ready(After::Call(progress, calling)) => {
                        DaemonStage::Calling(progress, calling)
                    }
                    Poll::Ready(After::End) => return None,
                },
                DaemonStage::Taken => return None,
            }
        }
    }
}

impl DaemonCall {
    fn poll(&mut self, daemon: &Daemon, cx: &mut Context<'_>) -> Poll<DaemonCallEnd> {
        // The order matters: a call that has returned was neither late nor cancelled.
        if let Poll::Ready(ended) = self.call.as_mut().poll(cx) {
            return Poll::Ready(DaemonCallEnd::Returned(ended));
        }
        if self.deadline.as_mut().is_some_and(|it| it.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(DaemonCallEnd::TimedOut);
        }
        // A call that waits for long passes its turn on.
        self.attempt.turn.take_if(|it| it.is_over(cx));
        // The request to stop has woken the daemon.
        if daemon.stopped.reasons().contains(StopReason::DaemonCancelled) {
            return Poll::Ready(DaemonCallEnd::Cancelled);
        }
        Poll::Pending
    }
}

impl Daemon {
    /// Runs a woken daemon. Only the driver calls this.
    pub(super) fn run_woken(self: &Arc<Self>) {
        // The daemon may have been woken again after its end.
        if self.has_ended() {
            return;
        }
        if !self.bound().services.leadership.may_act() {
            // Another replica may lead. The daemon is woken again when the loss is noticed.
            if self.stopped.reasons().contains(StopReason::DaemonCancelled) {
                self.finish();
            }
            return;
        }
        let waker = Waker::from(Arc::clone(self));
        let stage = self.replace_stage(DaemonStage::Taken);
        let step = || stage.step(self, &mut Context::from_waker(&waker));
        match panic::catch_unwind(AssertUnwindSafe(step)) {
            Ok(Some(stage)) => drop(self.replace_stage(stage)),
            Ok(None) => self.finish(),
            Err(panic) => {
                let text = format!(
                    "{} has ended because of a bug in the operator itself: {}; please report it",
                    self.handler(),
                    panic_text(&*panic)
                );
                self.logger(LoggerKind::Full).log(LogLevel::Error, &text);
                self.finish();
            }
        }
    }

    /// Ends the daemon in any way: drops its stage.
    pub(super) fn finish(&self) {
        drop(self.replace_stage(DaemonStage::Taken));
        self.base.daemons.finish(self);
    }

    /// Returns whether the wait is over, and then removes the daemon from the schedule.
    fn unschedule_if_due(&self, due: Nanos) -> bool {
        let daemons = &self.base.daemons;
        let is_due = self.take_change()
            || self.must_end()
            || self.level().is_some_and(|it| it.call.is_requested())
            || daemons.uptime() >= Duration::from(due);
        if is_due {
            daemons.unschedule(due, self.key);
        }
        is_due
    }
}

impl Wake for Daemon {
    fn wake(self: Arc<Self>) {
        self.enqueue();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.enqueue();
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}
