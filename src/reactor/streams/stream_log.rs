//! Logs each change in a stream's state once. Probes get the state from its [`Pulse`](crate::telemetry::Pulse).

use std::time::Duration;

use tokio::time::Instant;

use crate::ports::ApiError;

/// The log target of streams.
const TARGET: &str = "kopf.watch";

/// The interval after which the same failure is logged again if the stream worked in between: otherwise a stream that fails
/// repeatedly for one reason would fill the log.
const REPEAT_AFTER: Duration = Duration::from_mins(10);

/// The state of one stream.
#[derive(Debug)]
pub(in crate::reactor) struct StreamLog {
    /// The resource and the namespace of the stream.
    stream: String,
    state: State,
    /// The failure that was last logged, and when.
    logged: Option<(String, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Starting,
    Alive,
    /// Whether the failure was logged.
    Failed(bool),
}

impl StreamLog {
    /// Creates the log of a stream that starts.
    pub(in crate::reactor) fn new(stream: String) -> Self {
        StreamLog { stream, state: State::Starting, logged: None }
    }

    /// Notes that the watch is open and works.
    pub(in crate::reactor) fn alive(&mut self) {
        if self.state == State::Failed(true) {
            tracing::info!(target: TARGET, "Watching {} works again.", self.stream);
        }
        self.state = State::Alive;
    }

    /// Logs that the stream has failed and keeps trying, so that users know why no events arrive.
    pub(in crate::reactor) fn failed(&mut self, error: &ApiError) {
        let is_known = self.logged.as_ref().is_some_and(|(text, at)| {
            *text == error.message
                && (at.elapsed() < REPEAT_AFTER || matches!(self.state, State::Failed(_)))
        });
        let hint = error.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        let text = format!("Watching {} failed, retrying: {error}.{hint}", self.stream);
        if is_known {
            tracing::debug!(target: TARGET, "{text}");
        } else {
            tracing::error!(target: TARGET, "{text}");
            self.logged = Some((error.message.clone(), Instant::now()));
        }
        self.state = State::Failed(!is_known || self.state == State::Failed(true));
    }
}
