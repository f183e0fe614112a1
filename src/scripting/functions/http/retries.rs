//! The option `retries`: which attempts are repeated, and after which pause.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::logic::text::{duration, nearest::unknown_option};
use crate::scripting::{
    functions::outcome::{Datum, Failure, Outcome, integer},
    values::text::shown,
};

/// Maximum number of attempts of one request.
const ATTEMPTS_MAX: usize = 20;
/// Statuses of servers that are busy or restarting.
const BUSY: [u64; 4] = [429, 502, 503, 504];
/// Doubled after each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Limits every pause, even one that a server requests.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// How often a request is repeated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Retries {
    attempts: usize,
    /// The last one is repeated; if empty, pauses are doubled.
    pauses: Vec<Duration>,
    /// Statuses that are repeated, if the script names them.
    on: Option<Vec<u64>>,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { attempts: 1, pauses: Vec::new(), on: None }
    }
}

/// An attempt that has ended.
pub(super) struct HttpAttempt<'a> {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) method: &'a Method,
    pub(super) outcome: &'a Outcome,
    /// Whether the server has certainly not received it.
    pub(super) is_unsent: bool,
}

impl Retries {
    /// Reads the option `retries`.
    pub(super) fn of(options: Option<&Map<String, Value>>) -> Result<Self, Failure> {
        let Some(options) = options else { return Ok(Retries::default()) };
        let known = ["attempts", "backoff", "on"];
        if let Some(name) = options.keys().find(|it| !known.contains(&it.as_str())) {
            return Err(format!("`retries`: {}", unknown_option(name, &known)).into());
        }
        let attempts = options.get("attempts").unwrap_or(&Value::Null);
        let attempts = integer(attempts)
            .and_then(|it| usize::try_from(it).ok())
            .filter(|it| (1..=ATTEMPTS_MAX).contains(it))
            .ok_or_else(|| {
                let got = shown(attempts);
                format!("`retries.attempts`: expected a number from 1 to {ATTEMPTS_MAX}, got {got}")
            })?;
        Ok(Retries {
            attempts,
            pauses: pauses(options.get("backoff"))?,
            on: on(options.get("on"))?,
        })
    }

    /// Returns the pause before the next attempt; `None` if there is none.
    pub(super) fn pause(&self, attempt: &HttpAttempt<'_>, now: Timestamp) -> Option<Duration> {
        if attempt.number >= self.attempts || !self.is_repeated(attempt) {
            return None;
        }
        let asked = fields(attempt.outcome).and_then(|(_, after)| requested(&after?, now));
        let doubled = || FIRST_PAUSE.saturating_mul(1 << attempt.number.saturating_sub(1).min(10));
        let own = self.pauses.get(attempt.number - 1).or(self.pauses.last()).copied();
        Some(asked.unwrap_or_else(|| own.unwrap_or_else(doubled)).min(PAUSE_MAX))
    }

    /// Returns whether to repeat an attempt. A request that may have been executed is repeated only if the script names the status.
    fn is_repeated(&self, attempt: &HttpAttempt<'_>) -> bool {
        let is_idempotent = !matches!(*attempt.method, Method::POST | Method::PATCH);
        match attempt.outcome {
            Ok(_) => fields(attempt.outcome).is_some_and(|(status, after)| match &self.on {
                Some(on) => on.contains(&status),
                None if is_idempotent => BUSY.contains(&status),
                None => matches!(status, 429 | 503) && after.is_some(),
            }),
            Err(Failure::Answer(refusal)) => {
                matches!(refusal.reason.as_str(), "Unreachable" | "Timeout")
                    && (is_idempotent || attempt.is_unsent)
            }
            Err(Failure::Plain(_)) => false,
        }
    }
}

/// Returns the status and the header `Retry-After` of a response.
fn fields(outcome: &Outcome) -> Option<(u64, Option<String>)> {
    let Ok(Datum::Json(answer)) = outcome else { return None };
    let after = answer.pointer("/headers/retry-after").and_then(Value::as_str);
    Some((answer.get("status")?.as_u64()?, after.map(str::to_owned)))
}

/// Returns the pause that a server requests, in seconds or as a date.
fn requested(after: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = after.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(after.trim()).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

fn pauses(value: Option<&Value>) -> Result<Vec<Duration>, Failure> {
    let one = |it: &Value| {
        duration::parse(it).ok_or_else(|| {
            let expected = duration::EXPECTED;
            Failure::Plain(format!("`retries.backoff`: expected {expected}, got {}", shown(it)))
        })
    };
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().take(ATTEMPTS_MAX).map(one).collect(),
        Some(it) => Ok(vec![one(it)?]),
    }
}

fn on(value: Option<&Value>) -> Result<Option<Vec<u64>>, Failure> {
    let wrong = |it: &Value| {
        Failure::Plain(format!(
            "`retries.on`: expected a list of statuses such as 503, got {}",
            shown(it)
        ))
    };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let status = |it: &Value| {
                let number = integer(it).and_then(|it| u64::try_from(it).ok());
                number.filter(|it| (100..600).contains(it)).ok_or_else(|| wrong(it))
            };
            items.iter().map(status).collect::<Result<_, _>>().map(Some)
        }
        Some(it) => Err(wrong(it)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripting::functions::http::errors::no_response;

    fn pause(
        retries: &Retries,
        method: &Method,
        outcome: &Outcome,
        is_unsent: bool,
    ) -> Option<u64> {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let attempt = HttpAttempt { number: 2, method, outcome, is_unsent };
        retries.pause(&attempt, now).map(|it| it.as_secs())
    }

    #[expect(clippy::unnecessary_wraps, reason = "an outcome, as attempts have it")]
    fn answered(status: u16, after: Option<&str>) -> Outcome {
        let headers = after.map_or(json!({}), |it| json!({ "retry-after": it }));
        Ok(json!({ "status": status, "headers": headers }).into())
    }

    #[test]
    fn numbers_have_no_fraction() {
        let read = |options: Value| {
            let read = Retries::of(options.as_object());
            read.map(|it| (it.attempts, it.on)).map_err(Failure::into_message)
        };
        assert_eq!(read(json!({ "attempts": 3 })), Ok((3, None)));
        assert_eq!(read(json!({ "attempts": 3.0, "on": [500.0] })), Ok((3, Some(vec![500]))));
        for wrong in [json!(0), json!(21), json!(-1), json!(2.5), json!("3"), json!(1e300)] {
            let message = read(json!({ "attempts": wrong })).unwrap_err();
            assert!(
                message.starts_with("`retries.attempts`: expected a number from 1 to 20"),
                "{message}"
            );
        }
        for wrong in [json!([99]), json!([600]), json!([500.5]), json!(["503"]), json!(503)] {
            let message = read(json!({ "attempts": 2, "on": wrong })).unwrap_err();
            assert!(message.starts_with("`retries.on`: expected a list of statuses"), "{message}");
        }
    }

    #[test]
    fn only_what_may_be_executed_again_is_repeated() {
        let retries = Retries { attempts: 3, ..Retries::default() };
        let named = Retries { on: Some(vec![500]), ..retries.clone() };
        let last = Retries { attempts: 2, ..retries.clone() };
        let lost: Outcome = Err(no_response("Unreachable", String::new()));
        let untrusted: Outcome = Err(no_response("Untrusted", String::new()));
        let date = "Mon, 23 Nov 2026 12:00:30 GMT";
        for (retries, method, outcome, is_unsent, expected) in [
            (&retries, Method::GET, &answered(503, None), false, Some(2)),
            (&retries, Method::GET, &answered(503, Some("7")), false, Some(7)),
            (&retries, Method::GET, &answered(429, Some(date)), false, Some(30)),
            (&retries, Method::GET, &answered(429, Some("9999")), false, Some(60)),
            (&retries, Method::GET, &answered(500, None), false, None),
            (&retries, Method::POST, &answered(503, None), false, None),
            (&retries, Method::POST, &answered(503, Some("7")), false, Some(7)),
            (&named, Method::POST, &answered(500, None), false, Some(2)),
            (&named, Method::GET, &answered(503, None), false, None),
            (&retries, Method::PUT, &lost, false, Some(2)),
            (&retries, Method::POST, &lost, false, None),
            (&retries, Method::POST, &lost, true, Some(2)),
            (&retries, Method::GET, &untrusted, false, None),
            (&retries, Method::GET, &Err("not granted".into()), false, None),
            (&last, Method::GET, &answered(503, None), false, None),
        ] {
            let got = pause(retries, &method, outcome, is_unsent);
            assert_eq!(got, expected, "{method} {outcome:?}");
        }
    }
}
