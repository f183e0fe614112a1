//! From signals of the system to the end of the process.
//!
//! The first SIGINT or SIGTERM asks for a graceful exit. A second one, or a graceful exit that takes longer than
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
    /// Ctrl+C
    Interrupt,
    /// `kill`, and what Kubernetes sends to a pod that has to go.
    Terminate,
}

impl StopSignal {
    /// As the system calls it.
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        }
    }

    /// Its number; both have had it since the first Unix.
    pub fn number(self) -> u8 {
        match self {
            StopSignal::Interrupt => 2,
            StopSignal::Terminate => 15,
        }
    }
}

/// The number of the signal that cannot be handled: what a process that overstays its exit would get.
const SIGKILL: u8 = 9;

/// Listens from now on; the default action of these signals is off. Needs a running runtime.
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

/// Cancels `stop` at the first signal. Returns only when the process has to end at once.
pub async fn watch(
    signals: impl Stream<Item = StopSignal>,
    stop: CancellationToken,
    settings: Arc<Mutex<Settings>>,
) -> Exit {
    let mut signals = std::pin::pin!(signals);
    let Some(first) = signals.next().await else { return std::future::pending().await };
    tracing::info!(
        target: "kopf.running",
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
        // A person who asks twice is answered before the clock.
        biased;
        Some(second) = signals.next() => {
            tracing::warn!(
                target: "kopf.running",
                "Signal {} is received again. Exiting immediately; cleanup may be incomplete.", second.name()
            );
            Exit::Killed(second.number())
        }
        () = overdue => {
            tracing::error!(
                target: "kopf.running",
                "The graceful exit takes too long (settings.process.ultimate_exiting_timeout). Exiting immediately."
            );
            Exit::Killed(SIGKILL)
        }
    }
}
