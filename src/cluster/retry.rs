//! Whether a failed attempt is repeated, and after which pause.
//!
//! The contract is `tests/vectors/api-retries.json`. Two knowing differences: a 403 is final, because permissions do not heal
//! by waiting and a minute of attempts only hides the message; and a `Retry-After` that is no number is ignored, and a long one cut.

use std::time::Duration;

use super::failure::{Answer, Failure};
use crate::settings::Networking;

/// The longest pause a server may ask for; ours are tens of seconds. Newer events of an object wait for it.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// What follows from a failed attempt.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// Repeating cannot help.
    Final,
    /// Repeating could help, but all attempts are used up.
    Exhausted,
    /// Once more.
    Again(Pause),
}

/// The time until the next attempt.
#[derive(Debug, PartialEq)]
pub(super) struct Pause {
    /// What we would wait by ourselves.
    pub(super) own: Duration,
    /// What the server asked for, if that is followed.
    pub(super) asked: Option<Duration>,
}

impl Pause {
    /// How long to wait.
    pub(super) fn duration(&self) -> Duration {
        self.asked.unwrap_or(self.own)
    }
}

/// Judges the failure of the attempt with this number, counted from zero. A 401 only comes here when other credentials can be
/// had: then another attempt can end differently.
///
/// A request that must not be carried out twice is repeated only if the server has surely not carried it out.
pub(super) fn judge(
    failure: &Failure,
    attempt: usize,
    networking: &Networking,
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
        // Accepted: its effect is there already.
        Failure::Payload(_) | Failure::Malformed(_)
        // A matter of configuration.
        | Failure::Untrusted(_) | Failure::Unsendable(_) => false,
    };
    match (worth, networking.error_backoffs.get(attempt)) {
        (false, _) => Verdict::Final,
        (true, None) => Verdict::Exhausted,
        (true, Some(own)) => {
            let asked = requested(failure).filter(|it| networking.enforce_retry_after || it > own);
            Verdict::Again(Pause { own: *own, asked })
        }
    }
}

/// The pause the server asks for: the header first, then the details of the status.
fn requested(failure: &Failure) -> Option<Duration> {
    let Failure::Answer(answer @ Answer { status: 429, retry_after, .. }) = failure else {
        return None;
    };
    let header = retry_after.as_deref().and_then(|it| it.trim().parse::<f64>().ok());
    let seconds = header.map(f64::trunc).or(answer.retry_after_seconds())?;
    let pause = Duration::try_from_secs_f64(seconds).ok()?;
    Some(pause.min(RETRY_AFTER_MAX))
}
