//! `ctx.stopped`: what daemons and timers can learn about their end; the same for both languages.
//!
//! `reason` is absent until they must stop; then it is a value that prints like `RESOURCE_DELETED|DAEMON_SIGNALLED`,
//! iterates over the names, and has a method `contains`. As data it is the list of the names.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use serde_json::Value;
use tokio::time::{Sleep, sleep};

use super::{duration, text::did_you_mean};
use crate::call::{StopWaiter, Stopped};
use crate::logic::background::stopping::{StopReason, StopReasons};

/// Maximum wait. More than a century is a mistake, and would only risk an overflow.
pub(in crate::scripting) const SLEEP_MAX: Duration = Duration::from_hours(100 * 366 * 24);

/// Returns the argument of `wait`; `None` is without a limit.
pub(in crate::scripting) fn timeout(value: &Value) -> Result<Option<Duration>, String> {
    duration(value).map_err(|it| format!("stopped.wait: {it}"))
}

pin_project! {
    /// Waits until the daemon must stop, or for a time. Returns whether it must stop.
    ///
    /// The flag decides, whichever came first. All of it is one allocation: many thousands may wait.
    pub(in crate::scripting) struct StopWait {
        waiting: StopWaiter,
        #[pin]
        pause: StopPause,
    }
}

pin_project! {
    #[project = PauseProjected]
    enum StopPause {
        ForEver,
        // The timer is created at the first poll: it must count from the moment when the wait begins.
        For { duration: Duration },
        Sleeping { #[pin] sleep: Sleep },
    }
}

/// Waits for the flag; without a timeout, indefinitely.
pub(in crate::scripting) fn wait(stopped: &Stopped, timeout: Option<Duration>) -> StopWait {
    let pause = match timeout {
        Some(timeout) => StopPause::For { duration: timeout.min(SLEEP_MAX) },
        None => StopPause::ForEver,
    };
    StopWait { waiting: stopped.waiting(), pause }
}

impl Future for StopWait {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut this = self.project();
        if this.waiting.poll(cx, |it| !it.is_empty()).is_ready() {
            return Poll::Ready(true);
        }
        if let PauseProjected::For { duration } = this.pause.as_mut().project() {
            let sleep = sleep(*duration);
            this.pause.set(StopPause::Sleeping { sleep });
        }
        match this.pause.project() {
            PauseProjected::Sleeping { sleep } => {
                sleep.poll(cx).map(|()| this.waiting.stopped().is_set())
            }
            PauseProjected::ForEver | PauseProjected::For { .. } => Poll::Pending,
        }
    }
}

/// Returns why it must stop; `None` while it need not.
pub(in crate::scripting) fn reasons(stopped: &Stopped) -> Option<StopReasons> {
    Some(stopped.reasons()).filter(|it| !it.is_empty())
}

/// Returns whether the reason of this name is among them. The error names the nearest known one.
pub(in crate::scripting) fn contains(reasons: StopReasons, name: &Value) -> Result<bool, String> {
    let Some(name) = name.as_str() else {
        return Err(format!("stopped.reason: expected the name of a reason, got {name}"));
    };
    let reason = StopReason::named(name).ok_or_else(|| {
        let near = did_you_mean(&name.to_uppercase(), StopReason::names(), "");
        format!("stopped.reason: there is no reason {name:?}{near}")
    })?;
    Ok(reasons.contains(reason))
}

/// Returns the reasons as data.
pub(in crate::scripting) fn listed(reasons: StopReasons) -> Value {
    reasons.iter().map(StopReason::as_str).collect()
}

/// Returns the reasons as a string, even while there are none.
pub(in crate::scripting) fn shown(stopped: &Stopped) -> String {
    reasons(stopped).map_or_else(|| "not stopped".to_owned(), |it| it.to_string())
}
