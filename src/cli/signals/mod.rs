//! Ends the process after signals.
//!
//! The first SIGINT or SIGTERM requests a graceful exit. A second one, or a graceful exit that takes longer than
//! `settings.process.ultimate_exiting_timeout`, ends the process at once. (Kopf ignores the second signal.)

use std::{io, sync::Arc, task::Poll};

use futures::{Stream, StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::report::Exit;
use crate::settings::Settings;

#[cfg(test)]
mod tests;

/// A signal that stops the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl+C in the terminal: SIGINT.
    Interrupt,
    /// `kill`, and Kubernetes when it stops a pod.
    Terminate,
}

impl StopSignal {
    /// Returns the name of the signal.
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        }
    }

    /// Returns the number of the signal, the same on all Unix systems.
    pub fn number(self) -> u8 {
        match self {
            StopSignal::Interrupt => 2,
            StopSignal::Terminate => 15,
        }
    }
}

/// The number of the signal that cannot be handled: it would end a process that exceeds its grace period.
const SIGKILL: u8 = 9;

/// Starts listening; disables the default action of these signals. Needs a running runtime.
pub fn listen() -> io::Result<impl Stream<Item = StopSignal> + Unpin> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(stream::poll_fn(move |context| {
        if interrupt.poll_recv(context).is_ready() {
            return Poll::Ready(Some(StopSignal::Interrupt));
        }
        terminate.poll_recv(context).map(|_received| Some(StopSignal::Terminate))
    }))
}

/// Cancels `stop` at the first signal. Returns only if the process must end at once.
pub async fn watch(
    signals: impl Stream<Item = StopSignal>,
    stop: CancellationToken,
    settings: Arc<Mutex<Settings>>,
) -> Exit {
    let mut signals = std::pin::pin!(signals);
    let Some(first) = signals.next().await else { return std::future::pending().await };
    tracing::info!(
        target: "kopf.reactor",
        "Signal {} is received. Operator is stopping.", first.name()
    );
    stop.cancel();
    let limit = {
        let settings = settings.lock();
        settings.process.ultimate_exiting_timeout
    };
    let overdue = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // A second signal is handled before the timeout.
        biased;
        Some(second) = signals.next() => {
            tracing::warn!(
                target: "kopf.reactor",
                "Signal {} is received again. Exiting immediately; cleanup may be incomplete.", second.name()
            );
            Exit::Killed(second.number())
        }
        () = overdue => {
            tracing::error!(
                target: "kopf.reactor",
                "The graceful exit takes too long (settings.process.ultimate_exiting_timeout). Exiting immediately."
            );
            Exit::Killed(SIGKILL)
        }
    }
}
