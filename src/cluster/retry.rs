//! Decides whether a failed attempt is retried, and after which pause.
//!
//! The contract is `tests/vectors/api-retries.json`. There are two deliberate differences: a 403 is final, because waiting does not
//! grant permissions and a minute of attempts only hides the message; and a `Retry-After` that is not a number is ignored, and a
//! long one limited.

use std::time::Duration;

use super::failure::{ErrorResponse, RequestFailure};
use crate::settings::NetworkingSettings;

/// Maximum pause that a server may request, longer than the default pauses of the settings. Newer events of an object wait for it.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// The consequence of a failed attempt.
#[derive(Debug, PartialEq)]
pub(super) enum RetryDecision {
    /// A retry cannot help.
    Final,
    /// A retry could help, but all attempts are used up.
    Exhausted,
    /// Retry after this pause.
    Again(RetryPause),
}

/// The time until the next attempt.
#[derive(Debug, PartialEq)]
pub(super) struct RetryPause {
    /// The pause according to the settings.
    pub(super) own: Duration,
    /// The pause that the server requested, if it is used.
    pub(super) asked: Option<Duration>,
}

impl RetryPause {
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
    failure: &RequestFailure,
    attempt: usize,
    networking: &NetworkingSettings,
    is_idempotent: bool,
) -> RetryDecision {
    let worth = match failure {
        RequestFailure::Answer(answer) if answer.is_mistyped() => false,
        RequestFailure::Answer(answer) if is_idempotent => {
            matches!(answer.status, 401 | 429 | 500..=599)
        }
        RequestFailure::Answer(answer) => match answer.status {
            401 => true,
            429 | 503 => answer.asks_to_retry(),
            _ => false,
        },
        RequestFailure::Disconnected(_) | RequestFailure::Timeout(_) => is_idempotent,
        RequestFailure::Unreachable(_) | RequestFailure::Credentials(_) => true,
        // Accepted: the request has already taken effect.
        RequestFailure::Payload(_) | RequestFailure::Malformed(_)
        // A problem of the configuration.
        | RequestFailure::Untrusted(_) | RequestFailure::Unsendable(_) => false,
    };
    let last = || networking.error_backoffs.last().filter(|_| networking.repeat_last_backoff);
    match (worth, networking.error_backoffs.get(attempt).or_else(last)) {
        (false, _) => RetryDecision::Final,
        (true, None) => RetryDecision::Exhausted,
        (true, Some(own)) => {
            let asked = requested(failure).filter(|it| networking.enforce_retry_after || it > own);
            RetryDecision::Again(RetryPause { own: *own, asked })
        }
    }
}

/// Returns the pause that the server requests: from the header, or else from the details of the status.
fn requested(failure: &RequestFailure) -> Option<Duration> {
    let RequestFailure::Answer(answer @ ErrorResponse { status: 429, retry_after, .. }) = failure
    else {
        return None;
    };
    let header = retry_after.as_deref().and_then(|it| it.trim().parse::<f64>().ok());
    let seconds = header.map(f64::trunc).or(answer.retry_after_seconds())?;
    let pause = Duration::try_from_secs_f64(seconds).ok()?;
    Some(pause.min(RETRY_AFTER_MAX))
}
