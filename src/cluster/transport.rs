//! One request, with its attempts: sent through the client, judged by `retry.rs`, told by `failure.rs`.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};
use tracing::{debug, error, info};

use super::{
    failure::{Action, Answer, Failure},
    reason::reason,
    retry::{Verdict, judge},
};
use crate::ports::{ApiError, BoxFuture};
use crate::settings::{Networking, Settings};

/// The longest body read at once. The largest collections are some hundreds of megabytes.
const BODY_BYTES_MAX: usize = 2 << 30;

/// The longest body read of an answer that is no success; only its message matters.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// Requests on their way at once, without streams. Each takes a connection of its own, and one TLS handshake costs as much as
/// several requests: a burst of objects must not become a burst of connections.
pub(super) const REQUESTS_MAX: usize = 32;

/// The log target of requests.
const TARGET: &str = "kopf.networking";

/// The usual type of answers.
pub(super) const JSON: &str = "application/json";

/// How the operator calls itself.
const USER_AGENT: &str = concat!("kopf/", env!("CARGO_PKG_VERSION"));

/// One request, ready to be sent any number of times.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The HTTP method.
    pub(super) method: Method,
    /// Path and query.
    pub(super) url: String,
    /// The media types of the answer.
    pub(super) accept: &'static str,
    /// The body and its content type.
    pub(super) content: Option<(&'static str, Bytes)>,
    /// What it is for.
    pub(super) action: Action<'a>,
}

/// Makes a client with the credentials as they are now.
pub(super) type Renew =
    Box<dyn Fn() -> BoxFuture<'static, Result<kube::Client, ApiError>> + Send + Sync>;

/// The connection to a cluster, and the one policy of its use.
pub(super) struct Transport {
    link: Mutex<Link>,
    /// Only one renewal of the credentials at a time; the others wait for its result.
    renewal: tokio::sync::Mutex<()>,
    /// `None` for a client that was given to us.
    renew: Option<Renew>,
    settings: Mutex<Arc<Settings>>,
    /// At most [`REQUESTS_MAX`] are taken.
    places: Semaphore,
    /// The address, for messages; empty if unknown.
    server: String,
    default_namespace: String,
    refuses_streaming: AtomicBool,
}

/// The client with the present credentials.
#[derive(Clone)]
struct Link {
    client: kube::Client,
    /// Grows with each renewal: tells a late 401 of old credentials from one of the present ones.
    generation: u64,
}

impl<'a> Request<'a> {
    /// A GET.
    pub(super) fn get(url: String, action: Action<'a>) -> Self {
        Request { method: Method::GET, url, accept: JSON, content: None, action }
    }

    /// The same with an answer of another type.
    pub(super) fn accepting(self, accept: &'static str) -> Self {
        Request { accept, ..self }
    }

    fn build(&self) -> Result<http::Request<Body>, Failure> {
        let mut builder = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.url)
            .header(header::ACCEPT, self.accept)
            .header(header::USER_AGENT, USER_AGENT);
        let mut body = Body::empty();
        if let Some((content_type, content)) = &self.content {
            builder = builder.header(header::CONTENT_TYPE, *content_type);
            body = Body::from(content.clone());
        }
        builder.body(body).map_err(|it| Failure::Unsendable(it.to_string()))
    }

    fn label(&self) -> String {
        format!("{} {}", self.method, self.url)
    }
}

impl Transport {
    /// A connection through this client.
    pub(super) fn new(
        client: kube::Client,
        renew: Option<Renew>,
        server: String,
        settings: Arc<Settings>,
    ) -> Self {
        Transport {
            default_namespace: client.default_namespace().to_owned(),
            link: Mutex::new(Link { client, generation: 0 }),
            renewal: tokio::sync::Mutex::new(()),
            renew,
            settings: Mutex::new(settings),
            places: Semaphore::new(REQUESTS_MAX),
            server,
            refuses_streaming: AtomicBool::new(false),
        }
    }

    /// The namespace of the credentials.
    pub(super) fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// The settings of requests that bring none of their own.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&lock(&self.settings))
    }

    /// Holds for all requests from now on.
    pub(super) fn configure(&self, settings: Arc<Settings>) {
        *lock(&self.settings) = settings;
    }

    /// The error for the caller.
    pub(super) fn fail(&self, failure: Failure, action: &Action<'_>) -> ApiError {
        failure.into_error(action, &self.server)
    }

    /// Sends a request until it is accepted, and reads the whole answer.
    pub(super) async fn fetch(
        &self,
        request: &Request<'_>,
        networking: &Networking,
    ) -> Result<Bytes, ApiError> {
        // The place is kept until the answer is read: so long the connection is in use.
        let (response, _place) = self.attempt(request, networking, Some(&self.places)).await?;
        let limit = networking.request_timeout;
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
        let failure = match timeout(limit, body.collect()).await {
            Ok(Ok(body)) => return Ok(body.to_bytes()),
            Ok(Err(error)) => Failure::Payload(reason(error.as_ref())),
            Err(_) => Failure::Timeout(limit),
        };
        Err(self.fail(failure, &request.action))
    }

    /// Whether the server has said that it does not give initial objects in the form of changes.
    pub(super) fn refuses_streaming(&self) -> bool {
        self.refuses_streaming.load(Ordering::Relaxed)
    }

    /// Notes that it does not; tells whether that is news.
    pub(super) fn refuse_streaming(&self) -> bool {
        !self.refuses_streaming.swap(true, Ordering::Relaxed)
    }

    /// Sends a request until it is accepted; the body is still to be read, and nothing limits how long that takes.
    pub(super) async fn open(
        &self,
        request: &Request<'_>,
        networking: &Networking,
        connect_timeout: Option<Duration>,
    ) -> Result<Response<Body>, ApiError> {
        // An answer begins as soon as there is a connection: what limits the one limits the other.
        let limit = connect_timeout.or(networking.connect_timeout);
        let limit =
            limit.map_or(networking.request_timeout, |it| it.min(networking.request_timeout));
        let networking = Networking { request_timeout: limit, ..networking.clone() };
        self.attempt(request, &networking, None).await.map(|(response, _)| response)
    }

    /// The attempts of one request. A place is taken for each of them, not for the pauses between them: what one object has
    /// to wait for must not hold up the others.
    async fn attempt<'a>(
        &self,
        request: &Request<'_>,
        networking: &Networking,
        places: Option<&'a Semaphore>,
    ) -> Result<(Response<Body>, Option<SemaphorePermit<'a>>), ApiError> {
        let attempts = networking.error_backoffs.len().saturating_add(1);
        let mut attempt = 0_usize;
        loop {
            let number = attempt.saturating_add(1);
            if attempt > 0 {
                debug!(target: TARGET, "Request attempt #{number}/{attempts}: {}", request.label());
            }
            let place = match places {
                Some(places) => places.acquire().await.ok(),
                None => None,
            };
            let link = lock(&self.link).clone();
            let failure = match attempt_once(&link.client, request, networking).await {
                Ok(response) => {
                    if attempt > 0 {
                        debug!(target: TARGET, "Request attempt #{number}/{attempts} succeeded: {}", request.label());
                    }
                    return Ok((response, place));
                }
                Err(failure) => failure,
            };
            drop(place);
            let pause = match judge(&failure, attempt, networking, self.renew.is_some()) {
                Verdict::Final => return Err(self.fail(failure, &request.action)),
                Verdict::Exhausted => {
                    error!(target: TARGET, "Request attempt #{number}/{attempts} failed; escalating: {} -> {failure}", request.label());
                    return Err(self.fail(failure, &request.action));
                }
                Verdict::Again(pause) => pause,
            };
            if let Some(asked) = pause.asked {
                let (own, asked) = (pause.own.as_secs_f64(), asked.as_secs_f64());
                debug!(target: TARGET, "Overriding the backoff {own}s with the retry-after {asked}s from the server: {}", request.label());
            }
            error!(target: TARGET, "Request attempt #{number}/{attempts} failed; will retry: {} -> {failure}", request.label());
            sleep(pause.duration()).await;
            if let Failure::Answer(Answer { status: 401, .. }) = failure {
                self.renew(link.generation).await;
            }
            attempt = number;
        }
    }

    /// Reads the credentials again, unless somebody did so since that generation.
    async fn renew(&self, generation: u64) {
        let Some(renew) = &self.renew else { return };
        let _one_at_a_time = self.renewal.lock().await;
        if lock(&self.link).generation != generation {
            return;
        }
        info!(target: TARGET, "Re-authentication has been initiated.");
        match renew().await {
            Ok(client) => {
                *lock(&self.link) = Link { client, generation: generation.wrapping_add(1) };
                info!(target: TARGET, "Re-authentication has finished.");
            }
            Err(problem) => {
                error!(target: TARGET, "Re-authentication has failed: {problem}");
            }
        }
    }
}

async fn attempt_once(
    client: &kube::Client,
    request: &Request<'_>,
    networking: &Networking,
) -> Result<Response<Body>, Failure> {
    let limit: Duration = networking.request_timeout;
    let response = timeout(limit, client.send(request.build()?))
        .await
        .map_err(|_elapsed| Failure::Timeout(limit))?
        .map_err(|it| Failure::of_client(&it))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|it| it.to_str().ok()).map(str::to_owned);
    let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX).collect();
    // A refusal is a refusal, even if its explanation does not arrive.
    let body = match timeout(limit, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    Err(Failure::Answer(Answer::read(status.as_u16(), retry_after, &body)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are replaced as a whole: a panic cannot leave them half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
