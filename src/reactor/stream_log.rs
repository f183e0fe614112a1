//! How a stream is, told to people once per change. Probes hear it from its [`Pulse`](crate::ports::Pulse).

use std::time::Duration;

use tokio::time::Instant;

use crate::ports::ApiError;

/// The log target of streams.
const TARGET: &str = "kopf.watching";

/// The same failure is told again after this long, if it was overcome in between: a stream that fails again and again for
/// one reason would fill the log otherwise.
const TOLD_FOR: Duration = Duration::from_mins(10);

/// The state of one stream.
#[derive(Debug)]
pub(super) struct StreamLog {
    /// The resource and where it is watched.
    stream: String,
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

impl StreamLog {
    /// Of a stream that starts.
    pub(super) fn new(stream: String) -> Self {
        StreamLog { stream, state: State::Starting, told: None }
    }

    /// The watch is open: it works.
    pub(super) fn alive(&mut self) {
        if self.state == State::Failed(true) {
            tracing::info!(target: TARGET, "Watching {} works again.", self.stream);
        }
        self.state = State::Alive;
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
    }
}
