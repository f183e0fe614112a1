//! The health of the whole operator, in the format of Kubernetes components: `[+]login ok`, `[-]stream/… failed: reason`.

use std::{collections::BTreeMap, fmt::Write as _};

use tokio::time::Instant;

use crate::telemetry::{HealthState, PartHealth};

/// The kind of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// `/healthz`, `/livez`: fails if a part is dead, because then a restart may help.
    Alive(&'static str),
    /// `/readyz`: passes if all parts are ready.
    Ready,
}

/// The options in the query: `?verbose&exclude=login`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CheckOptions {
    /// Lists all parts even if all are healthy.
    pub(super) verbose: bool,
    /// Parts that are reported as excluded, whatever their state.
    pub(super) exclude: Vec<String>,
}

/// The result: whether the check passed, and the response text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) is_fine: bool,
    pub(super) text: String,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Check::Alive(name) => name,
            Check::Ready => "readyz",
        }
    }

    /// Returns whether this part passes the check.
    fn accepts(self, part: &PartHealth, now: Instant) -> bool {
        match self {
            // A part that keeps trying would only start over after a restart.
            Check::Alive(_) => part.state != HealthState::Dead,
            Check::Ready => is_ready(part, now),
        }
    }
}

/// Returns whether a part is ready and was confirmed recently.
pub(super) fn is_ready(part: &PartHealth, now: Instant) -> bool {
    part.state == HealthState::Ready && silence(part, now).is_none()
}

/// Returns how many seconds ago a part was last confirmed, if that is too long ago.
fn silence(part: &PartHealth, now: Instant) -> Option<u64> {
    let age = now.saturating_duration_since(part.seen);
    part.silence_max.is_some_and(|max| age > max).then_some(age.as_secs())
}

/// Checks all parts that are not excluded. The report is only `ok` if all are healthy and the lines were not requested.
pub(super) fn report(
    check: Check,
    parts: &BTreeMap<String, PartHealth>,
    options: &CheckOptions,
    now: Instant,
) -> Report {
    let mut text = String::new();
    let mut is_fine = true;
    for (name, part) in parts {
        let line = if options.exclude.contains(name) {
            format!("[+]{name} excluded: ok")
        } else if check.accepts(part, now) {
            format!("[+]{name} ok{}", remark(part, now))
        } else {
            is_fine = false;
            format!("[-]{name} failed: {}", reason(part, now))
        };
        // Writing to a string cannot fail.
        writeln!(text, "{line}").unwrap_or_default();
    }
    let unknown: Vec<_> = options.exclude.iter().filter(|it| !parts.contains_key(*it)).collect();
    if !unknown.is_empty() {
        writeln!(text, "warn: some health checks cannot be excluded: no matches for {unknown:?}")
            .unwrap_or_default();
    }
    if is_fine && !options.verbose {
        return Report { is_fine, text: "ok".into() };
    }
    let verdict = if is_fine { "passed" } else { "failed" };
    writeln!(text, "{} check {verdict}", check.name()).unwrap_or_default();
    Report { is_fine, text }
}

/// Returns the remark on a healthy part.
fn remark(part: &PartHealth, now: Instant) -> String {
    let said = if part.text.is_empty() { String::new() } else { format!(": {}", part.text) };
    let heard = part.silence_max.map(|_| now.saturating_duration_since(part.seen).as_secs());
    let heard = heard.map(|it| format!(" (last report {it} s ago)")).unwrap_or_default();
    format!("{said}{heard}")
}

fn reason(part: &PartHealth, now: Instant) -> String {
    match (part.state, silence(part, now)) {
        (HealthState::Ready, Some(seconds)) => format!("no report for {seconds} s"),
        (HealthState::Unready, Some(seconds)) => {
            format!("{}; no report for {seconds} s", part.text)
        }
        (HealthState::Dead, _) => format!("{}; restart the operator", part.text),
        (HealthState::Ready | HealthState::Unready, None) => part.text.clone(),
    }
}

impl CheckOptions {
    /// Parses a query. Ignores unknown parameters.
    pub(super) fn parse(query: &str) -> Self {
        let mut options = CheckOptions::default();
        for (name, value) in parameters(query) {
            match name {
                "verbose" => options.verbose = value != "false" && value != "0",
                "exclude" => options.exclude.push(decoded(value)),
                _ => {}
            }
        }
        options
    }
}

/// Returns the parameters of a query, still percent-encoded.
fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|it| it.split_once('=').unwrap_or((it, "")))
}

/// Returns the value of a parameter, if the query has it.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    parameters(query).find(|(it, _)| *it == name).map(|(_, value)| decoded(value))
}

/// Decodes percent-encoding: names of parts contain spaces and slashes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |it: Option<u8>| it.and_then(|it| char::from(it).to_digit(16));
        let pair = (byte == b'%').then(|| digit(ahead.next()).zip(digit(ahead.next()))).flatten();
        match pair.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = ahead;
            }
            None => bytes.push(if byte == b'+' { b' ' } else { byte }),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
