//! Reports that the operator is paused: it is healthy then, but users may wonder why it is idle.

use tokio_util::sync::CancellationToken;

use crate::ports::Pauses;
use crate::telemetry::{Health, HealthState};

/// The name of the part in the health report.
const PART: &str = "pause";

/// Follows the pauses until `stop`.
pub async fn follow_pauses(pauses: Pauses, health: Health, stop: CancellationToken) {
    let seen = pauses.clone();
    health.metrics().sample("kopf_paused", "Whether the operator is paused by others", move || {
        i64::from(seen.is_paused())
    });
    let follow = async {
        loop {
            pauses.until(true).await;
            let text = format!("paused by {}", pauses.blockers().join(", "));
            health.note(PART, HealthState::Ready, &text);
            pauses.until(false).await;
            health.forget(PART);
        }
    };
    tokio::select! {
        biased; // the end first
        () = stop.cancelled() => {}
        () = follow => {}
    }
}
