//! The report of a failed attempt to users: in log lines, in Kubernetes events and in metrics.

use std::{borrow::Cow, fmt::Write as _, time::Duration};

use super::{
    handler::Handler,
    outcome::{Effort, Outcome, RETRIES_ERROR, TIMEOUT_ERROR},
};
use crate::logic::text::python_text;

/// Not a failure: the handler waits for its sub-handlers.
const UNFINISHED: &str = "HandlerChildrenRetry";

/// A failed attempt of a handler, and what happens next.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    /// The number of the attempt, from 1.
    pub number: u64,
    /// The pause before the next attempt; `None` if the handler has failed permanently.
    pub retry_in: Option<Duration>,
    /// The message without numbers that change from attempt to attempt: equal for attempts that failed in the same way.
    pub gist: String,
    /// What failed, which attempt it was, and what happens next.
    pub text: String,
}

impl FailedAttempt {
    /// Describes the outcome of an attempt; `None` if it has not failed.
    pub fn of(handler: &Handler, before: Effort, outcome: &Outcome) -> Option<Self> {
        let error = outcome.error.as_ref().filter(|it| it.class != UNFINISHED)?;
        let number = before.retries.saturating_add(1);
        let limit = handler.limits.retries.map(|it| format!(" of {it}")).unwrap_or_default();
        let retry_in = (!outcome.last).then(|| outcome.delay.unwrap_or_default());
        // The messages of exhausted limits are complete sentences about the handler.
        let is_exhausted = [TIMEOUT_ERROR, RETRIES_ERROR].contains(&&*error.class);
        let gist = match retry_in {
            None if is_exhausted => error.to_string(),
            None => format!("{handler} failed permanently: {error}"),
            Some(_) if error.class == "TemporaryError" => {
                format!("{handler} failed temporarily: {error}")
            }
            Some(_) => format!("{handler} failed: {error}"),
        };
        let text = match retry_in {
            None if is_exhausted => format!("{gist} (gave up after attempt {number}{limit})"),
            None => format!("{handler} failed permanently (attempt {number}{limit}): {error}"),
            Some(pause) => {
                let how = if error.class == "TemporaryError" { " temporarily" } else { "" };
                let next = shown(pause);
                format!("{handler} failed{how} (attempt {number}{limit}), retrying {next}: {error}")
            }
        };
        Some(FailedAttempt { number, retry_in, gist, text })
    }

    /// Returns whether the handler will not be called again for this change.
    pub fn gave_up(&self) -> bool {
        self.retry_in.is_none()
    }

    /// Adds the command that retries the handler.
    #[must_use]
    pub fn with_command(mut self, command: &str) -> Self {
        let _always_fits = write!(self.text, " (to try again: {command})");
        self
    }
}

fn shown(pause: Duration) -> Cow<'static, str> {
    if pause.is_zero() {
        return "at once".into();
    }
    format!("in {} s", python_text::seconds(pause)).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Duration, Effort, FailedAttempt};
    use crate::logic::handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::Kind,
        outcome::{self, CallEnd, Raised, RaisedKind},
    };

    fn text(retries: Option<u64>, before: u64, kind: RaisedKind) -> String {
        let mut handler = declare(Declaration {
            kind: Kind::Create,
            selectors: vec![Argument::Value(json!("kex"))],
            options: Vec::new(),
            function: Function::new(ScriptId(0), 0, "create_fn"),
            location: "a.lua:1".into(),
        })
        .expect("a handler");
        handler.limits.retries = retries;
        let raised = Raised { kind, message: "no secret".into(), trace: None };
        let effort = Effort { retries: before, ..Effort::default() };
        let (outcome, _) =
            outcome::after(&handler, CallEnd::Raised(raised), effort, Duration::from_mins(1));
        FailedAttempt::of(&handler, effort, &outcome).map(|it| it.text).unwrap_or_default()
    }

    #[test]
    fn a_failed_attempt_has_its_number_and_its_next_time() {
        let temporary = |pause: Option<u64>| RaisedKind::Temporary(pause.map(Duration::from_secs));
        let arbitrary = || RaisedKind::Arbitrary("Error".into());
        let cases = [
            (
                text(Some(5), 1, temporary(Some(30))),
                "Handler 'create_fn' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret",
            ),
            (
                text(None, 0, temporary(None)),
                "Handler 'create_fn' failed temporarily (attempt 1), retrying at once: no secret",
            ),
            (
                text(None, 2, arbitrary()),
                "Handler 'create_fn' failed (attempt 3), retrying in 60 s: no secret",
            ),
            (
                text(None, 0, RaisedKind::Permanent),
                "Handler 'create_fn' failed permanently (attempt 1): no secret",
            ),
            (
                text(Some(2), 1, temporary(Some(1))),
                "Handler 'create_fn' failed temporarily but will exceed 2 retries: no secret (gave up after attempt 2 of 2)",
            ),
            (text(None, 0, RaisedKind::Unfinished(None)), ""),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
