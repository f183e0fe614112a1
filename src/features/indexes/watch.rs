//! Logs why no handlers are called: the indexes are not complete.

use std::{pin::pin, time::Duration};

use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::Readiness;
use crate::telemetry::{Health, HealthState};

/// The name of the part in the health report.
const PART: &str = "indexes";
/// The time after which a warning is logged: listings of big clusters take seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of streams named in a line.
const SHOWN: usize = 5;

/// Keeps the health report up to date until `stop`, and warns once each time handlers have been held back for long.
pub async fn watch(readiness: Readiness, health: Health, stop: CancellationToken) {
    let mut stop = pin!(stop.cancelled());
    let mut deadline = None;
    let mut is_warned = false;
    loop {
        let changes = readiness.changes();
        let missing = readiness.missing();
        report(&health, readiness.is_reached(), &missing);
        let until = if missing.is_empty() {
            (deadline, is_warned) = (None, false);
            Instant::now()
        } else {
            *deadline.get_or_insert_with(|| Instant::now() + PATIENCE)
        };
        tokio::select! {
            biased; // the end first: no warning then; a change may have made the warning untrue
            () = &mut stop => return,
            () = changes => {}
            () = time::sleep_until(until), if !missing.is_empty() && !is_warned => {
                is_warned = true;
                warn(readiness.is_reached(), &readiness.missing());
            }
        }
    }
}

fn report(health: &Health, is_reached: bool, missing: &[String]) {
    let (state, text) = match (is_reached, missing.is_empty()) {
        (false, _) => (HealthState::Unready, format!("not complete: {}", list(missing))),
        (true, true) => (HealthState::Ready, "complete".into()),
        // Streams that were found later hold only their own objects back: the operator as a whole works.
        (true, false) => (HealthState::Ready, format!("complete, but {}", list(missing))),
    };
    health.note(PART, state, &text);
}

fn warn(is_reached: bool, missing: &[String]) {
    let meanwhile = if is_reached {
        "Until then some handlers are not called, and some entries date from before the reload"
    } else {
        "Handlers that may use them are not called until then"
    };
    let seconds = PATIENCE.as_secs();
    tracing::warn!(
        target: "kopf.indexes",
        "The indexes are not complete after {seconds} s: {}. {meanwhile}; see above for errors of these resources.",
        list(missing)
    );
}

fn list(missing: &[String]) -> String {
    let mut shown = missing.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    if missing.is_empty() {
        return "the resources are not known yet".into();
    }
    if let Some(more) = missing.len().checked_sub(SHOWN).filter(|it| *it > 0) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
