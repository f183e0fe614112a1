//! The log lines about the attempts of one request.

use tracing::debug;

use super::{failure::RequestFailure, request::KubeRequest, retry::RetryPause};
use crate::settings::NetworkingSettings;

/// The log target of requests.
const TARGET: &str = "kopf.client";

/// The attempts of one request, for the log.
pub(super) struct AttemptLog<'a> {
    pub(super) request: &'a KubeRequest<'a>,
    pub(super) server: &'a str,
    pub(super) networking: &'a NetworkingSettings,
    /// The number of the current one, from zero.
    pub(super) attempt: usize,
}

impl AttemptLog<'_> {
    /// Returns the maximum number of attempts, as the log shows it.
    fn attempts(&self) -> String {
        match self.networking.error_backoffs.len() {
            1.. if self.networking.repeat_last_backoff => "unlimited".to_owned(),
            pauses => pauses.saturating_add(1).to_string(),
        }
    }

    fn label(&self) -> String {
        self.request.label(self.server)
    }

    fn number(&self) -> usize {
        self.attempt.saturating_add(1)
    }

    pub(super) fn announce(&self) {
        if self.attempt > 0 {
            let (number, attempts) = (self.number(), self.attempts());
            debug!(target: TARGET, "Request attempt #{number}/{attempts}: {}", self.label());
        }
    }

    pub(super) fn succeed(&self) {
        if self.attempt > 0 {
            let (number, attempts) = (self.number(), self.attempts());
            debug!(target: TARGET, "Request attempt #{number}/{attempts} succeeded: {}", self.label());
        }
    }

    /// Logs a failed attempt, as Kopf does and in this program's words: at debug level in an outage, which `outage.rs` reports once.
    fn failed(&self, end: &str, next: &str, failure: &RequestFailure) {
        let (number, attempts, label) = (self.number(), self.attempts(), self.label());
        let is_outage = matches!(failure, RequestFailure::Unreachable(_));
        let level: u64 = if is_outage { 10 } else { 30 };
        let text = format!("{label} failed (attempt {number} of {attempts}), {next}: {failure}");
        let gist = format!("{} requests failed: {failure}", self.request.method);
        tracing::event!(
            target: TARGET,
            tracing::Level::ERROR,
            call.text = text,
            call.level = level,
            call.gist = gist,
            "Request attempt #{number}/{attempts} failed; {end}: {label} -> {failure}"
        );
    }

    pub(super) fn give_up(&self, failure: &RequestFailure) {
        self.failed("escalating", "giving up", failure);
    }

    pub(super) fn announce_early_end(&self, pause: &RetryPause) {
        let seconds = pause.duration().as_secs_f64();
        debug!(target: TARGET, "The object or the script has changed, so the pause of {seconds} s ends early, and the request fails: {}", self.label());
    }

    pub(super) fn announce_pause(&self, pause: &RetryPause, failure: &RequestFailure) {
        if let Some(asked) = pause.asked {
            let (own, asked) = (pause.own.as_secs_f64(), asked.as_secs_f64());
            debug!(target: TARGET, "Overriding the backoff {own}s with the retry-after {asked}s from the server: {}", self.label());
        }
        let seconds = pause.duration().as_secs_f64();
        self.failed("will retry", &format!("retrying in {seconds} s"), failure);
    }
}
