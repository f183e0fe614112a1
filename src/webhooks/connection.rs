//! One connection of an API server: TLS, then HTTP/1.1 with keep-alive, with limits on everything.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::peer;
use crate::logic::{
    admission::{configuration, review::ReviewError},
    text::duration,
};
use crate::ports::{ReviewClient, ReviewRequest, Reviewer};
use crate::telemetry::Metrics;

/// The log target of the server.
pub(super) const TARGET: &str = "kopf.admission";

/// Maximum size of a review: it contains the object before and after the request, each of at most 3 MiB on API servers.
pub(super) const BODY_BYTES_MAX: usize = 8 << 20;

/// Time limit of the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Time limit for the head of a request. Longer than API servers keep idle connections (90 s), so that they close them first.
const HEAD_WITHIN: Duration = Duration::from_mins(2);

/// Maximum number of bytes in the head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The longest time that API servers wait.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// The state that all connections share.
pub(super) struct Shared {
    pub(super) reviewer: Arc<dyn Reviewer>,
    /// The path above the handlers; empty for none.
    pub(super) path: String,
    /// Whether the configurations name a service: then the path contains the handler in another form.
    pub(super) is_service: bool,
    /// Counts refused connections, by reason.
    pub(super) metrics: Metrics,
    /// Limits the reviews that are handled at once; the others wait.
    pub(super) permits: Semaphore,
}

/// Serves a connection until it is closed, or until `stop`: then the request in progress is finished.
pub(super) async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    // Responses are small, and nothing follows them.
    let _unsupported = stream.set_nodelay(true).is_err();
    let Some(acceptor) = tls else {
        let client = Arc::new(Value::Object(Map::new()));
        return speak(stream, client, shared, stop).await;
    };
    let accepted = timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
    match accepted {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let client = certificates.and_then(<[_]>::first).map(peer::described);
            let client = Arc::new(client.unwrap_or_else(|| Value::Object(Map::new())));
            speak(stream, client, shared, stop).await;
        }
        Ok(Err(error)) => {
            shared.metrics.connection_refused(reason(&error));
            tracing::debug!(target: TARGET, "A webhook client was refused: {error}");
        }
        Err(_elapsed) => {
            shared.metrics.connection_refused("timeout");
            tracing::debug!(target: TARGET, "A webhook client did not finish the TLS handshake.");
        }
    }
}

/// Returns why a handshake has failed: because of the certificate of the client, or for another reason.
fn reason(error: &std::io::Error) -> &'static str {
    let tls = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            "certificate"
        }
        Some(_) | None => "handshake",
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    certificate: Arc<Value>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, certificate) = (Arc::clone(&shared), Arc::clone(&certificate));
        async move { Ok::<_, Infallible>(answer(&shared, certificate, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_BYTES_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // The client decides how a connection ends, so errors are ignored.
    tokio::select! {
        biased; // any order will do: the next poll notices the end
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
        _ended = served.as_mut() => return,
    }
    let _ended = served.await.is_ok();
}

async fn answer(
    shared: &Shared,
    certificate: Arc<Value>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let Some(id) = handler(shared, head.uri.path()) else {
        return refusal(StatusCode::NOT_FOUND, "there are no webhooks under this path");
    };
    if head.method != Method::POST {
        let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, "send reviews with POST");
        refused.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return refused;
    }
    let deadline = deadline(&head);
    let limit = deadline.unwrap_or_else(|| Instant::now() + TIMEOUT_MAX);
    let body = match timeout_at(limit, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!("a review can have at most {BODY_BYTES_MAX} bytes");
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        Ok(Err(error)) => return refusal(StatusCode::BAD_REQUEST, &error.to_string()),
        Err(_elapsed) => return refusal(StatusCode::REQUEST_TIMEOUT, "the review is incomplete"),
    };
    let client = ReviewClient::new(head.headers, certificate);
    let review = ReviewRequest { handler: Some(id), body, client, deadline };
    let Ok(permit) = timeout_at(limit, shared.permits.acquire()).await else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many reviews at once");
    };
    let answered = shared.reviewer.review(review).await;
    drop(permit);
    match answered {
        Ok(body) => {
            let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
            response.body(Full::new(body)).unwrap_or_default()
        }
        Err(error) => refusal(status(&error), &error.to_string()),
    }
}

/// Returns the id of the handler: the rest of the path.
fn handler(shared: &Shared, path: &str) -> Option<String> {
    let rest = path.strip_prefix(&shared.path)?;
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
    if shared.is_service
        && let Some(id) = configuration::id_of_segment(rest)
    {
        return Some(id);
    }
    Some(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

/// Returns when the client stops waiting, from the query `timeout=10s`.
fn deadline(head: &Parts) -> Option<Instant> {
    let mut fields = head.uri.query()?.split('&');
    let text = fields.find_map(|it| it.strip_prefix("timeout="))?;
    let timeout = duration::parse(&text.into())?;
    Some(Instant::now() + timeout.min(TIMEOUT_MAX))
}

fn status(error: &ReviewError) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn refusal(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(format!("{text}\n").into()));
    *response.status_mut() = status;
    response
}
