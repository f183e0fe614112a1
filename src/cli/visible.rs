//! What others can see of the operator: the listener of `--health`, and where the liveness endpoint will be.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::{options::RunOptions, report::Report};
use crate::features::probes::{Endpoint, Listener, Routes};
use crate::ports::Health;

/// The health of an operator and who serves it.
pub(super) struct Visible {
    /// Where the parts tell how they are.
    pub(super) health: Health,
    /// Served by the operator itself, when the start-up handlers have ended.
    pub(super) liveness: Option<Endpoint>,
    serving: JoinSet<()>,
    stop: CancellationToken,
}

impl Visible {
    /// Takes the address of `--health` and answers from now on: whoever asks during a slow start is told of it.
    pub(super) async fn open(options: &RunOptions) -> Result<Self, Report> {
        let (health, stop) = (Health::default(), CancellationToken::new());
        let mut serving = JoinSet::new();
        if let Some(address) = &options.health {
            let listener = Listener::bind(&address.host, address.port).await.map_err(|error| {
                Report::failure(error.to_string()).with_hint("choose another address with --health")
            })?;
            let routes = Arc::new(Routes::new(health.clone()));
            // With its real port, if any was asked for.
            let place =
                listener.address().map_or_else(|_| address.to_string(), |it| it.to_string());
            tracing::debug!(target: "kopf.probing", "Serving health and metrics at {place}");
            serving.spawn(listener.serve(routes, stop.clone()));
        }
        Ok(Visible { health, liveness: options.liveness.clone(), serving, stop })
    }

    /// Ends what [`Visible::open`] began.
    pub(super) async fn close(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}
