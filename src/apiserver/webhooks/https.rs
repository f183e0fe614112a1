//! Requests to webhooks: over HTTPS, or by a function of a test.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use serde_json::Value;

/// Limit of a response, in bytes; more than any review has.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The address of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookTarget {
    /// The URL of the endpoint.
    pub url: String,
    /// The certificates of trusted authorities, PEM; empty for those of the public web.
    pub trusted: Vec<u8>,
}

impl WebhookTarget {
    /// Parses a `clientConfig`. A Service is called by its DNS name in the cluster.
    pub(super) fn of(config: &Value) -> Self {
        let text = |path: &str| config.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let bundle: String = text("/caBundle").split_whitespace().collect();
        let trusted = BASE64_STANDARD.decode(bundle).unwrap_or_default();
        let url = match text("/url") {
            "" => {
                let port = config.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443);
                let path = text("/service/path").trim_start_matches('/');
                let [name, namespace] = [text("/service/name"), text("/service/namespace")];
                format!("https://{name}.{namespace}.svc:{port}/{path}")
            }
            url => url.to_owned(),
        };
        Self { url, trusted }
    }
}

/// Posts a body to a webhook. Returns the response, or the reason why there is none.
#[derive(Clone)]
pub struct Post(Arc<dyn Fn(WebhookTarget, Bytes) -> WebhookReply + Send + Sync>);

type WebhookReply = BoxFuture<'static, Result<Bytes, String>>;

impl Post {
    /// Creates a transport from a function.
    pub fn new<F>(post: impl Fn(WebhookTarget, Bytes) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Bytes, String>> + Send + 'static,
    {
        Self(Arc::new(move |target, body| Box::pin(post(target, body))))
    }

    /// Creates the transport of the real server: HTTPS.
    pub fn https() -> Self {
        https()
    }

    /// Posts a body to a target.
    pub fn call(&self, target: &WebhookTarget, body: Bytes) -> WebhookReply {
        (self.0)(target.clone(), body)
    }
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").finish_non_exhaustive()
    }
}

/// Creates the transport of the real server: HTTPS.
pub(crate) fn https() -> Post {
    Post::new(|target, body| async move {
        let failed = |why: &dyn std::fmt::Display| format!("Post {:?}: {why}", target.url);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&target.trusted).map_err(|it| failed(&it))?)
            .https_only()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let request = Request::post(&target.url).header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(body)).map_err(|it| failed(&it))?;
        let response = client
            .request(request)
            .await
            .map_err(|it| failed(&refused(&target.url, &it).unwrap_or_else(|| chain(&it))))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|it| failed(&it))?.to_bytes();
        if status.is_success() {
            Ok(body)
        } else {
            Err(failed(&format!("unexpected status {status}")))
        }
    })
}

fn tls(trusted: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if trusted.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for certificate in CertificateDer::pem_slice_iter(trusted) {
        let certificate =
            certificate.map_err(|it| format!("unable to load root certificates: {it}"))?;
        roots.add(certificate).map_err(|it| it.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|it| it.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

/// Returns Go's message for a refused connection; `None` for other errors.
fn refused(url: &str, error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut causes = std::iter::successors(Some(error), |it| it.source());
    let refused = causes.any(|it| {
        let io = it.downcast_ref::<std::io::Error>();
        io.is_some_and(|it| it.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    let uri: http::Uri = url.parse().ok()?;
    let (host, port) = (uri.host()?, uri.port_u16().unwrap_or(443));
    refused.then(|| format!("dial tcp {host}:{port}: connect: connection refused"))
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |it| it.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
