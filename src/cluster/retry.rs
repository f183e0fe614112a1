//! Decides whether a failed attempt is retried, and after which pause.
//!
//! The contract is `tests/vectors/api-retries.json`. There are two deliberate differences: a 403 is final, because waiting does not
//! grant permissions and a minute of attempts only hides the message; and a `Retry-After` that is not a number is ignored, and a
//! long one limited.

use std::time::Duration;

use super::failure::{Answer, Failure};
use crate::settings::NetworkingSettings;

/// Maximum pause that a server may request, longer than the default pauses of the settings. Newer events of an object wait for it.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// The consequence of a failed attempt.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// A retry cannot help.
    Final,
    /// A retry could help, but all attempts are used up.
    Exhausted,
    /// Retry after this pause.
    Again(Pause),
}

/// The time until the next attempt.
#[derive(Debug, PartialEq)]
pub(super) struct Pause {
    /// The pause according to the settings.
    pub(super) own: Duration,
    /// The pause that the server requested, if it is used.
    pub(super) asked: Option<Duration>,
}

impl Pause {
    /// Returns how long to wait.
    pub(super) fn duration(&self) -> Duration {
        self.asked.unwrap_or(self.own)
    }
}

/// Decides about the failure of the attempt with this number, counted from zero. A 401 is passed here only if other credentials are
/// available: then another attempt can succeed.
///
/// A request that is not idempotent is retried only if the server has certainly not executed it.
pub(super) fn judge(
    failure: &Failure,
    attempt: usize,
    networking: &NetworkingSettings,
    is_idempotent: bool,
) -> Verdict {
    let worth = match failure {
        Failure::Answer(answer) if answer.is_mistyped() => false,
        Failure::Answer(answer) if is_idempotent => {
            matches!(answer.status, 401 | 429 | 500..=599)
        }
        Failure::Answer(answer) => match answer.status {
            401 => true,
            429 | 503 => answer.asks_to_retry(),
            _ => false,
        },
        Failure::Disconnected(_) | Failure::Timeout(_) => is_idempotent,
        Failure::Unreachable(_) | Failure::Credentials(_) => true,
        // Accepted: the request has already taken effect.
        Failure::Payload(_) | Failure::Malformed(_)
        // A problem of the configuration.
        | Failure::Untrusted(_) | Failure::Unsendable(_) => false,
    };
    let last = || networking.error_backoffs.last().filter(|_| networking.repeat_last_backoff);
    match (worth, networking.error_backoffs.get(attempt).or_else(last)) {
        (false, _) => Verdict::Final,
        (true, None) => Verdict::Exhausted,
        (true, Some(own)) => {
            let asked = requested(failure).filter(|it| networking.enforce_retry_after || it > own);
            Verdict::Again(Pause { own: *own, asked })
        }
    }
}

/// Returns the pause that the server requests: from the header, or else from the details of the status.
fn requested(failure: &Failure) -> Option<Duration> {
    let Failure::Answer(answer @ Answer { status: 429, retry_after, .. }) = failure else {
        return None;
    };
    let header = retry_after.as_deref().and_then(|it| it.trim().parse::<f64>().ok());
    let seconds = header.map(f64::trunc).or(answer.retry_after_seconds())?;
    let pause = Duration::try_from_secs_f64(seconds).ok()?;
    Some(pause.min(RETRY_AFTER_MAX))
}
