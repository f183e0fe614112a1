//! Webhooks within the process: an embedded API server passes reviews to the operator directly, without TLS.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tokio::{sync::watch, time::Instant};

use crate::logic::{
    admission::{
        configuration::{ClientConfig, WebhookEndpoint},
        server::Publishing,
    },
    text::duration,
};
use crate::ports::{
    BoxFuture, ReviewClient, ReviewRequest, Reviewer, RunningServer, WebhookParts, WebhookServer,
    WebhookSetup,
};
use crate::settings::Settings;

/// The name of the webhook configurations, unless the settings have one; it is the name in Kopf's documentation.
const NAME: &str = "auto.kopf.dev";

/// The URL of the webhooks of this process. Nothing else can be reached under this name.
const URL: &str = "https://kopf-dev.invalid";

/// The connection between an embedded server and the operator in the same process. Clones share it.
#[derive(Clone, Default)]
pub struct LocalWebhooks(Arc<Mutex<Option<Weak<dyn Reviewer>>>>);

impl LocalWebhooks {
    /// Passes a review to the operator. `None` if the URL belongs to another webhook.
    pub async fn review(&self, url: &str, body: &Bytes) -> Option<Result<Bytes, String>> {
        let path = url.strip_prefix(URL)?;
        let reviewer = self.0.lock().as_ref().and_then(Weak::upgrade);
        let Some(reviewer) = reviewer else {
            return Some(Err("the operator is not running".to_owned()));
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let id = percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy();
        let request = ReviewRequest {
            handler: Some(id.into_owned()),
            body: body.clone(),
            client: ReviewClient::default(),
            deadline: deadline(query),
        };
        Some(reviewer.review(request).await.map_err(|it| it.to_string()))
    }
}

/// Returns when the server stops waiting, from the query `timeout=10s`.
fn deadline(query: &str) -> Option<Instant> {
    let timeout = query.split('&').find_map(|it| it.strip_prefix("timeout="))?;
    let timeout: Duration = duration::parse(&timeout.into())?;
    Some(Instant::now() + timeout)
}

impl WebhookServer for LocalWebhooks {
    fn setup(&self, settings: &Settings, _: Publishing) -> Result<WebhookSetup, String> {
        let managed = settings.admission.managed.clone().unwrap_or_else(|| NAME.to_owned());
        Ok(WebhookSetup { managed: Some(managed) })
    }

    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>> {
        let WebhookParts { reviewer, stop, .. } = parts;
        *self.0.lock() = Some(Arc::downgrade(&reviewer));
        let config = ClientConfig { endpoint: WebhookEndpoint::Url(URL.to_owned()), ca: None };
        let (sender, client) = watch::channel(None);
        sender.send_replace(Some(config));
        // Keeps the reviewer until the server stops.
        let serving = Box::pin(async move {
            stop.cancelled().await;
            drop((reviewer, sender));
        });
        Box::pin(async move { Ok(RunningServer { serving, client }) })
    }
}
