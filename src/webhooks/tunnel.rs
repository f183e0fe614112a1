//! Publishes the webhook server under the URL that tunnel handlers return.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::{sync::watch, time};

use super::connection::TARGET;
use crate::logic::admission::configuration::ClientConfig;
use crate::ports::AskTunnel;
use crate::telemetry::{Health, HealthState};

/// The name of the part in the health report.
const PART: &str = "webhook-tunnel";

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);

type Client = watch::Receiver<Option<ClientConfig>>;

/// The handlers, and their inputs.
pub(super) struct Tunnel {
    pub(super) ask: AskTunnel,
    /// The kwarg `server`, without the CA.
    pub(super) server: Map<String, Value>,
    /// The pause between two calls of the handlers.
    pub(super) interval: Duration,
    pub(super) health: Health,
}

/// Returns the address of the tunnel for API servers, and the future that keeps it up to date and never ends. `own` is the configuration
/// without the tunnel.
pub(super) fn start(tunnel: Tunnel, own: Client) -> (Client, BoxFuture<'static, ()>) {
    let (sender, client) = watch::channel(None);
    (client, Box::pin(tunnel.follow(own, sender)))
}

impl Tunnel {
    async fn follow(self, mut own: Client, sender: watch::Sender<Option<ClientConfig>>) {
        self.health.note(PART, HealthState::Unready, "the URL is not known yet");
        loop {
            let server = own.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            let Some(server) = server else { return std::future::pending().await };
            let pause = self.ask(&server, &sender).await;
            // A new CA is passed to the handlers at once.
            let _elapsed = time::timeout(pause, own.changed()).await.is_err();
        }
    }

    /// Calls the handlers. Returns the pause until the next call.
    async fn ask(
        &self,
        own: &ClientConfig,
        sender: &watch::Sender<Option<ClientConfig>>,
    ) -> Duration {
        let mut server = self.server.clone();
        server.insert("ca".into(), own.ca.clone().into());
        match (self.ask)(Arc::new(Value::Object(server))).await {
            Ok(found) => {
                let is_new = sender.send_if_modified(|it| {
                    let is_new = it.as_ref() != Some(&found);
                    *it = Some(found);
                    is_new
                });
                if is_new {
                    tracing::info!(target: TARGET, "The webhook tunnel is ready.");
                }
                self.health.note(PART, HealthState::Ready, "the URL is known");
                self.interval
            }
            Err(problem) => {
                let seconds = PAUSE.as_secs();
                let text =
                    format!("Cannot find the webhook tunnel, retrying in {seconds} s: {problem}");
                tracing::error!(target: TARGET, "{text}");
                if sender.borrow().is_none() {
                    self.health.note(PART, HealthState::Unready, &text);
                }
                PAUSE
            }
        }
    }
}
