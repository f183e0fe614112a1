//! How a stream is: told to people once per change, and noted for probes.

use std::time::Duration;

use tokio::time::Instant;

use crate::ports::{ApiError, Health, HealthState};

/// The log target of streams.
const TARGET: &str = "kopf.watching";

/// The same failure is told again after this long, if it was overcome in between: a stream that fails again and again for
/// one reason would fill the log otherwise.
const TOLD_FOR: Duration = Duration::from_mins(10);

/// Probes look at the age of streams in seconds: events between are not noted.
const NOTED_FOR: Duration = Duration::from_secs(1);

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Pulse {
    health: Health,
    /// The resource and where it is watched.
    stream: String,
    part: String,
    noted: Instant,
    state: State,
    /// The failure that was told last, and when.
    told: Option<(String, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Starting,
    Alive,
    /// Whether that was told.
    Failed(bool),
}

impl Pulse {
    /// Of a stream that starts.
    pub(super) fn new(health: Health, stream: String) -> Self {
        let part = format!("stream/{stream}");
        health.note(&part, HealthState::Unready, "is not listed yet");
        Pulse { health, stream, part, noted: Instant::now(), state: State::Starting, told: None }
    }

    /// Something came.
    pub(super) fn heard(&mut self) {
        if self.noted.elapsed() >= NOTED_FOR {
            self.noted = Instant::now();
            self.health.confirm(&self.part);
        }
    }

    /// The watch is open: it works.
    pub(super) fn alive(&mut self) {
        if self.state == State::Alive {
            return self.heard();
        }
        if self.state == State::Failed(true) {
            tracing::info!(target: TARGET, "Watching {} works again.", self.stream);
        }
        self.state = State::Alive;
        self.noted = Instant::now();
        self.health.note(&self.part, HealthState::Ready, "is watched");
    }

    /// The stream has failed, and goes on trying; the user should know why nothing comes.
    pub(super) fn failed(&mut self, error: &ApiError) {
        let is_known = self.told.as_ref().is_some_and(|(text, at)| {
            *text == error.message
                && (at.elapsed() < TOLD_FOR || matches!(self.state, State::Failed(_)))
        });
        let hint = error.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        let text =
            format!("Watching {} has failed and will be tried again: {error}.{hint}", self.stream);
        if is_known {
            tracing::debug!(target: TARGET, "{text}");
        } else {
            tracing::error!(target: TARGET, "{text}");
            self.told = Some((error.message.clone(), Instant::now()));
        }
        self.state = State::Failed(!is_known || self.state == State::Failed(true));
        self.health.note(&self.part, HealthState::Unready, &error.message);
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.health.forget(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::{HealthState, Pulse};
    use crate::ports::{ApiError, ErrorClass, Health};

    fn error(message: &str) -> ApiError {
        ApiError {
            class: ErrorClass::Denied,
            status: Some(403),
            message: message.into(),
            hint: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn health_knows_each_stream_while_it_lives() {
        let health = Health::default();
        let mut pulse = Pulse::new(health.clone(), "pods.v1 cluster-wide".into());
        let state = || health.parts().get("stream/pods.v1 cluster-wide").map(|it| it.state);
        assert_eq!(state(), Some(HealthState::Unready));
        pulse.alive();
        assert_eq!(state(), Some(HealthState::Ready));
        pulse.failed(&error("no"));
        assert_eq!(state(), Some(HealthState::Unready));
        pulse.alive();
        assert_eq!(state(), Some(HealthState::Ready));
        drop(pulse);
        assert_eq!(state(), None);
    }
}
