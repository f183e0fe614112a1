//! The health listener of `--health`, and the address of the liveness endpoint.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::{options::RunOptions, process, report::Report};
use crate::features::probes::{Listener, ProbeEndpoint, Routes};
use crate::ports::Clock;
use crate::telemetry::{Health, LogControl};

/// The health of an operator, and its listener.
pub(super) struct HealthServer {
    /// The health that all parts report to.
    pub(super) health: Health,
    /// The operator itself serves this endpoint, once the start-up handlers have ended.
    pub(super) liveness: Option<ProbeEndpoint>,
    serving: JoinSet<()>,
    stop: CancellationToken,
}

impl HealthServer {
    /// Binds the address of `--health` and serves at once, so that requests during a slow start are answered.
    pub(super) async fn open(
        options: &RunOptions,
        clock: Clock,
        log: Arc<dyn LogControl>,
    ) -> Result<Self, Report> {
        let (health, stop) = (Health::default(), CancellationToken::new());
        let start = clock.now();
        health.metrics().read_process(move || process::usage(start));
        let mut serving = JoinSet::new();
        if let Some(address) = &options.health {
            let listener = Listener::bind(&address.host, address.port).await.map_err(|error| {
                Report::failure(error.to_string()).with_hint("choose another address with --health")
            })?;
            let routes = Arc::new(Routes::new(health.clone()).with_log(log));
            // The actual port, if any free one was requested.
            let place =
                listener.address().map_or_else(|_| address.to_string(), |it| it.to_string());
            tracing::debug!(target: "kopf.probes", "Serving health and metrics at {place}");
            serving.spawn(listener.serve(routes, stop.clone()));
        }
        Ok(HealthServer { health, liveness: options.liveness.clone(), serving, stop })
    }

    /// Stops the listener, and waits for its end.
    pub(super) async fn close(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}
