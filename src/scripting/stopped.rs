//! `ctx.stopped`: what daemons and timers can ask about their end; the same for both languages.
//!
//! `reason` is absent until they are asked to stop; then it is a value that prints like `RESOURCE_DELETED|DAEMON_SIGNALLED`,
//! iterates over the names and tells with `contains` whether one is among them. As data it is the list of the names.

use std::{future::poll_fn, task::Poll, time::Duration};

use serde_json::Value;
use tokio::time::sleep;

use super::{names, text::did_you_mean};
use crate::logic::stopping::{StopReason, StopReasons};
use crate::ports::Stopped;

/// Longer waits end here; more than a century is a mistake, and not worth an overflow.
pub(super) const SLEEP_MAX: Duration = Duration::from_hours(100 * 366 * 24);

/// The argument of `wait`: none is for ever.
pub(super) fn timeout(value: &Value) -> Result<Option<Duration>, String> {
    names::duration(value).map_err(|it| format!("stopped.wait: {it}"))
}

/// Waits until it must stop, or for so long. Tells whether it must stop.
///
/// What counts is the flag, whichever was first.
pub(super) fn wait(
    stopped: &Stopped,
    timeout: Option<Duration>,
) -> impl Future<Output = bool> + use<> {
    // Made inside: a timer belongs to the moment when it is waited for. Pinned only once: many thousands may wait.
    let (mut waiting, mut pause) = (stopped.waiting(), None);
    poll_fn(move |cx| {
        if waiting.poll(cx, |it| !it.is_empty()).is_ready() {
            return Poll::Ready(true);
        }
        let Some(timeout) = timeout else { return Poll::Pending };
        let pause = pause.get_or_insert_with(|| Box::pin(sleep(timeout.min(SLEEP_MAX))));
        pause.as_mut().poll(cx).map(|()| waiting.stopped().is_set())
    })
}

/// Why it must stop; nothing while it need not.
pub(super) fn reasons(stopped: &Stopped) -> Option<StopReasons> {
    Some(stopped.reasons()).filter(|it| !it.is_empty())
}

/// Whether the reason of this name is among them. The error names the nearest known one.
pub(super) fn contains(reasons: StopReasons, name: &str) -> Result<bool, String> {
    let reason = StopReason::named(name).ok_or_else(|| {
        let near = did_you_mean(&name.to_uppercase(), StopReason::names(), "");
        format!("stopped.reason: there is no reason {name:?}{near}")
    })?;
    Ok(reasons.contains(reason))
}

/// As data.
pub(super) fn listed(reasons: StopReasons) -> Value {
    reasons.iter().map(StopReason::as_str).collect()
}

/// As text, also while there is none.
pub(super) fn shown(stopped: &Stopped) -> String {
    reasons(stopped).map_or_else(|| "not stopped".to_owned(), |it| it.to_string())
}
