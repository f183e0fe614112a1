//! The servers that receive reviews of admission webhooks, and the operator that responds to them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{BoxFuture, Clock, Cluster};
use crate::logic::{
    admission::{
        configuration::ClientConfig, guard::Guarded, own_objects::OwnObjects, review::ReviewError,
        server::Publishing,
    },
    object::Object,
};
use crate::settings::Settings;
use crate::telemetry::Health;

/// The client that sent a review: most often an API server.
#[derive(Clone, Debug)]
pub struct ReviewClient {
    headers: Arc<Headers>,
    /// The kwarg `sslpeer`: the verified certificate of the client; empty without one.
    pub certificate: Arc<Value>,
}

#[derive(Debug, Default)]
struct Headers {
    received: HeaderMap,
    /// The kwarg, built when it is first used.
    described: OnceLock<Arc<Value>>,
}

impl ReviewClient {
    /// Returns the client that sent these headers.
    pub fn new(received: HeaderMap, certificate: Arc<Value>) -> Self {
        let headers = Arc::new(Headers { received, described: OnceLock::new() });
        ReviewClient { headers, certificate }
    }

    /// Returns the kwarg `headers`; of repeated ones, the last value.
    pub fn headers(&self) -> &Arc<Value> {
        let Headers { received, described } = &*self.headers;
        described.get_or_init(|| {
            let text = |it: &http::HeaderValue| String::from_utf8_lossy(it.as_bytes()).into_owned();
            let pairs =
                received.iter().map(|(name, it)| (name.as_str().to_owned(), text(it).into()));
            Arc::new(Value::Object(pairs.collect()))
        })
    }
}

impl Default for ReviewClient {
    fn default() -> Self {
        ReviewClient::new(HeaderMap::new(), Arc::new(Value::Object(serde_json::Map::new())))
    }
}

/// A review as a server has received it.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// The handler that the path names; `None`: all handlers, for clients that do not know them.
    pub handler: Option<String>,
    /// The body of the request: JSON that is not parsed yet.
    pub body: Bytes,
    /// The client that sent it.
    pub client: ReviewClient,
    /// When the client stops waiting, if it has sent a timeout.
    pub deadline: Option<Instant>,
}

/// A responder to reviews.
pub trait Reviewer: Send + Sync + 'static {
    /// Calls the handlers for a review. Returns the body of the response, JSON.
    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<Bytes, ReviewError>>;
}

/// A function that calls the tunnel handlers with the kwarg `server`. They return the address of the webhook server for API servers.
pub type AskTunnel =
    Arc<dyn Fn(Arc<Value>) -> BoxFuture<'static, Result<ClientConfig, String>> + Send + Sync>;

/// A guard that loads edited scripts before they are stored.
pub trait ScriptGuard: Send + Sync + 'static {
    /// Returns the `ConfigMap`s whose edits are loaded.
    fn guarded(&self) -> Vec<Guarded>;

    /// Loads the scripts of a `ConfigMap`. The error is the reason why they cannot be loaded.
    fn check(&self, map: Arc<Object>) -> BoxFuture<'_, Result<(), String>>;
}

/// A receiver of reviews from API servers: over the network, or within the process.
pub trait WebhookServer: Send + Sync + 'static {
    /// Returns the guard of the scripts, if there is one.
    fn guard(&self) -> Option<Arc<dyn ScriptGuard>> {
        None
    }

    /// Returns the known objects of the operator that its webhooks do not review. Its Leases and its Secret are added.
    fn own_objects(&self) -> OwnObjects {
        OwnObjects::default()
    }

    /// Returns the setup of the webhooks, or why the settings do not permit admission handlers.
    ///
    /// # Errors
    /// Fails if the settings are incomplete.
    fn setup(&self, settings: &Settings, publishing: Publishing) -> Result<WebhookSetup, String>;

    /// Opens the server.
    ///
    /// # Errors
    /// Fails if it cannot be opened.
    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>>;
}

/// The setup of the webhooks of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSetup {
    /// The name of the webhook configurations; `None`: the user writes them.
    pub managed: Option<String>,
}

/// The inputs of a webhook server.
pub struct WebhookParts {
    /// Responds to the reviews.
    pub reviewer: Arc<dyn Reviewer>,
    /// The settings at the start of the server.
    pub settings: Arc<Settings>,
    /// The tunnel handlers, if there are any.
    pub tunnel: Option<AskTunnel>,
    /// The cluster, for certificates that are shared with other replicas.
    pub cluster: Arc<dyn Cluster>,
    /// The clock for the lifetimes of certificates.
    pub clock: Clock,
    /// The health to report problems to.
    pub health: Health,
    /// Stops the server; reviews in progress are finished.
    pub stop: CancellationToken,
}

/// A webhook server that is open.
pub struct RunningServer {
    /// Serves until the end.
    pub serving: BoxFuture<'static, ()>,
    /// The address by which API servers reach it; `None` until it is known.
    pub client: watch::Receiver<Option<ClientConfig>>,
}
