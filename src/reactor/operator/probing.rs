//! The liveness endpoint of the operator: from the end of the start-up handlers to the end of the streams.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::features::probes::{BindError, Listener, Liveness, ProbeEndpoint, Routes};
use crate::handling::activities::RepeatedActivity;
use crate::telemetry::Health;

/// The liveness endpoint, if configured.
pub(in crate::reactor) struct Probing {
    serving: JoinSet<()>,
    stop: CancellationToken,
}

impl Probing {
    /// Binds the address and starts to serve requests.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub(in crate::reactor) async fn start(
        endpoint: Option<ProbeEndpoint>,
        probe: RepeatedActivity,
        health: &Health,
    ) -> Result<Self, BindError> {
        let (mut serving, stop) = (JoinSet::new(), CancellationToken::new());
        if let Some(endpoint) = endpoint {
            let listener = Listener::bind(&endpoint.host, endpoint.port).await?;
            tracing::debug!(target: "kopf.probes", "Serving health status at {endpoint}");
            let routes = Routes::new(health.clone());
            let routes = routes.with_liveness(endpoint.path, Liveness::new(probe));
            serving.spawn(listener.serve(Arc::new(routes), stop.clone()));
        }
        Ok(Probing { serving, stop })
    }

    /// Stops the endpoints, and waits for their tasks.
    pub(in crate::reactor) async fn end(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}
