//! Sends a request with its attempts: through the client, retried by `retry.rs`, with the errors of `failure.rs`.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    attempt_log::AttemptLog,
    failure::{Action, ErrorResponse, RequestFailure},
    fence::Fence,
    http_client::ResponseBody,
    in_flight::MutatingRequests,
    limits::{Permit, RequestLimits, RequestOrigin},
    outage::{Jitter, Outage},
    reason::reason,
    refusal::refuse,
    request::{KubeRequest, SINGLE_REQUEST_TIMEOUT},
    retry::{RetryDecision, RetryPause, judge},
    sessions::{Advice, ClientSession, Sessions},
};
use crate::ports::{ApiError, Interrupt, Leadership};
use crate::settings::{NetworkingSettings, Settings};
use crate::telemetry::{ClientRequest, Health, Metrics};

/// Maximum size of a body in bytes. The largest collections are some hundreds of megabytes.
const BODY_BYTES_MAX: usize = 2 << 30;

/// Maximum size of an error response in bytes; only its message is used.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// A body that is still being received.
pub(super) type Frames = BoxStream<'static, Result<Bytes, kube::Error>>;

/// The response to one attempt.
type AttemptResult = Result<Response<ResponseBody>, RequestFailure>;

/// The connection to a cluster, with its policies.
pub(super) struct Transport {
    sessions: Sessions,
    settings: Mutex<Arc<Settings>>,
    /// For all requests except streams.
    limits: RequestLimits,
    outage: Outage,
    /// The address, for messages; empty if unknown.
    server: String,
    default_namespace: String,
    refuses_streaming: AtomicBool,
    /// Checked by requests that write before they are sent.
    fence: Mutex<Leadership>,
    /// Counts attempts by verb and result, and measures them.
    metrics: Metrics,
    mutating: MutatingRequests,
}

impl Transport {
    /// Creates a transport with these credentials.
    pub(super) fn new(sessions: Sessions, settings: Arc<Settings>, metrics: Metrics) -> Self {
        let (server, default_namespace) = sessions.place();
        Transport {
            sessions,
            settings: Mutex::new(settings),
            limits: RequestLimits::new(),
            outage: Outage::default(),
            server,
            refuses_streaming: AtomicBool::new(false),
            fence: Mutex::default(),
            default_namespace,
            metrics,
            mutating: MutatingRequests::default(),
        }
    }

    /// Returns the address of the server; empty if unknown.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Returns the certificate of the server, DER; `None` if a proxy leads to it, or without TLS.
    pub(super) async fn certificate(&self) -> Result<Option<Vec<u8>>, ApiError> {
        let (_ticket, session) = self.sessions.acquire().await;
        let Some(place) = session.place() else { return Ok(None) };
        let refused = |it| refuse(format!("cannot connect to {}: {it}", self.server), None);
        place.certificate().await.map(Some).map_err(refused)
    }

    /// Stretches pauses of streams at random.
    pub(super) fn with_jitter(self, jitter: Jitter) -> Self {
        Transport { outage: Outage::new(jitter), ..self }
    }

    /// Reports long outages to this health.
    pub(super) fn reporting(self, health: Health) -> Self {
        Transport { outage: self.outage.reporting(health), ..self }
    }

    /// Counts its mutating requests here.
    pub(super) fn counting(self, mutating: MutatingRequests) -> Self {
        Transport { mutating, ..self }
    }

    /// Returns the namespace of the credentials.
    pub(super) fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Returns the settings for requests without their own.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock())
    }

    /// Replaces the settings, for all requests from now on.
    pub(super) fn configure(&self, settings: Arc<Settings>) {
        *self.settings.lock() = settings;
    }

    /// Sets the fence, for all requests from now on.
    pub(super) fn fence(&self, leadership: Leadership) {
        *self.fence.lock() = leadership;
    }

    /// Returns the error for the caller.
    pub(super) fn fail(&self, failure: RequestFailure, action: &Action<'_>) -> ApiError {
        failure.into_error(action, &self.server)
    }

    /// Sends a request until it is accepted, and reads the whole response.
    pub(super) async fn fetch(
        &self,
        request: &KubeRequest<'_>,
        networking: &NetworkingSettings,
    ) -> Result<Bytes, ApiError> {
        self.fetch_unless(request, networking, None).await
    }

    /// Sends a request as [`Transport::fetch`] does, but fails if a pause before another attempt is interrupted.
    pub(super) async fn fetch_unless(
        &self,
        request: &KubeRequest<'_>,
        networking: &NetworkingSettings,
        interrupt: Option<Interrupt<'_>>,
    ) -> Result<Bytes, ApiError> {
        // The permit is kept until the body is read: until then the connection is in use.
        let limit = request.time_limit(networking);
        let attempts = Attempts { limit, limits: Some(&self.limits), interrupt };
        let accepted = self.attempt(request, networking, attempts).await?;
        let Accepted { response, mut permit, retired: _ } = accepted;
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
        let failure = match permit.during(pin!(timeout(limit, body))).await {
            Ok(Ok(body)) => return Ok(body.to_bytes()),
            Ok(Err(error)) => RequestFailure::Payload(reason(error.as_ref())),
            Err(_) => RequestFailure::Timeout(limit),
        };
        Err(self.fail(failure, &request.action))
    }

    /// Returns whether the server does not support initial objects in the form of changes.
    pub(super) fn refuses_streaming(&self) -> bool {
        self.refuses_streaming.load(Ordering::Relaxed)
    }

    /// Records that it does not. Returns whether that is new.
    pub(super) fn refuse_streaming(&self) -> bool {
        !self.refuses_streaming.swap(true, Ordering::Relaxed)
    }

    /// Sends a request until it is accepted. The body is read by the caller, without a time limit. It ends when the credentials of
    /// the request are retired.
    pub(super) async fn open(
        &self,
        request: &KubeRequest<'_>,
        networking: &NetworkingSettings,
        connect_timeout: Option<Duration>,
    ) -> Result<Response<Frames>, ApiError> {
        // A response begins as soon as there is a connection: the same limit applies to both.
        let limit = connect_timeout.or(networking.connect_timeout);
        let limit = limit.unwrap_or(SINGLE_REQUEST_TIMEOUT).min(networking.request_timeout);
        let attempts = Attempts { limit, limits: None, interrupt: None };
        let accepted = self.attempt(request, networking, attempts).await?;
        let retired = accepted.retired.cancelled_owned();
        Ok(accepted.response.map(|body| body.into_data_stream().take_until(retired).boxed()))
    }

    /// Sends a request for a WebSocket until it is accepted. The connection has changed its protocol then.
    pub(super) async fn upgrade(
        &self,
        request: &KubeRequest<'_>,
        networking: &NetworkingSettings,
    ) -> Result<Response<ResponseBody>, ApiError> {
        let limit = request.time_limit(networking);
        let attempts = Attempts { limit, limits: None, interrupt: None };
        Ok(self.attempt(request, networking, attempts).await?.response)
    }

    /// Makes the attempts of one request. Each takes its own permit, and the pauses between them take none: the pauses of one
    /// object must not delay the others. While the server rejects all credentials, the request waits.
    async fn attempt(
        &self,
        request: &KubeRequest<'_>,
        networking: &NetworkingSettings,
        Attempts { limit, limits, interrupt }: Attempts<'_>,
    ) -> Result<Accepted, ApiError> {
        let mut log = AttemptLog { request, networking, server: &self.server, attempt: 0 };
        loop {
            let mut permit = match limits {
                Some(limits) => limits.acquire(request.of, &request.action).await,
                None => Permit::default(),
            };
            // The permit is kept: a request without credentials would otherwise wait for a permit next.
            let (ticket, session) = self.sessions.acquire().await;
            log.announce();
            let begun = Instant::now();
            let fence = self.fence_of(request);
            let sent = {
                let _in_flight = request.is_mutating().then(|| self.mutating.begin());
                let attempt = pin!(attempt_once(&session, request, (limit, fence.clone())));
                permit.during(pin!(Fence::during(fence, attempt))).await
            };
            self.count(request, &sent, begun.elapsed());
            self.note_connection(sent.as_ref().err(), limits.is_none());
            let failure = match sent {
                Ok(response) => {
                    log.succeed();
                    self.sessions.accepted(&ticket);
                    return Ok(Accepted { response, permit, retired: session.retired() });
                }
                Err(failure) => failure,
            };
            drop((permit, session));
            if failure.is_rejection() || self.sessions.may_be_outdated(&failure) {
                match self.sessions.rejected(&ticket, &failure) {
                    Advice::Again => continue,
                    Advice::Attempt if !failure.is_rejection() => continue,
                    Advice::Attempt if log.attempt == 0 => {
                        log.attempt = 1;
                        continue;
                    }
                    Advice::Attempt => {}
                    Advice::Final => return Err(self.fail(failure, &request.action)),
                }
            } else if failure.is_answer() {
                self.sessions.accepted(&ticket);
            }
            match judge(&failure, log.attempt, networking, request.is_idempotent()) {
                RetryDecision::Final => return Err(self.fail(failure, &request.action)),
                RetryDecision::Exhausted => {
                    log.give_up(&failure);
                    return Err(self.fail(failure, &request.action));
                }
                RetryDecision::Again(pause) => {
                    log.announce_pause(&pause, &failure);
                    if !self.pause(&pause, &failure, interrupt).await {
                        log.announce_early_end(&pause);
                        return Err(self.fail(failure, &request.action));
                    }
                    log.attempt = log.attempt.saturating_add(1);
                }
            }
        }
    }

    /// Records whether the server is reachable. A stream without a response counts, too: a watch begins at once.
    fn note_connection(&self, failure: Option<&RequestFailure>, is_stream: bool) {
        match failure {
            Some(failure @ RequestFailure::Unreachable(_)) => {
                self.outage.begin(&self.server, failure);
            }
            Some(failure @ RequestFailure::Timeout(_)) if is_stream => {
                self.outage.begin(&self.server, failure);
            }
            Some(RequestFailure::Answer(_)) | None => self.outage.end(),
            Some(_) => {}
        }
    }

    /// Waits before the next attempt. Returns whether to make it.
    async fn pause(
        &self,
        pause: &RetryPause,
        failure: &RequestFailure,
        interrupt: Option<Interrupt<'_>>,
    ) -> bool {
        let duration = pause.duration();
        let sleeping = async {
            if matches!(failure, RequestFailure::Unreachable(_)) {
                self.outage.sleep(duration).await;
            } else {
                sleep(duration).await;
            }
        };
        let Some(interrupt) = interrupt else {
            sleeping.await;
            return true;
        };
        tokio::select! {
            biased; // a complete pause is not an interrupted one
            () = sleeping => true,
            () = interrupt.wait(pause.asked.is_some()) => false,
        }
    }

    /// Returns the state of the connection.
    pub(super) fn outage(&self) -> &Outage {
        &self.outage
    }

    /// Returns the fence of a request: writes need the lease, except for the operator's writes of leases.
    fn fence_of(&self, request: &KubeRequest<'_>) -> Option<Fence> {
        let is_of_leases =
            request.of == RequestOrigin::Operator && request.action.is_about_leases();
        let needs_no_lease = is_of_leases || !request.is_mutating();
        (!needs_no_lease).then(|| Fence(self.fence.lock().clone()))
    }

    fn count(&self, request: &KubeRequest<'_>, sent: &AttemptResult, took: Duration) {
        let result = match sent {
            Ok(response) => response.status().as_u16().to_string(),
            Err(failure) => failure.label(),
        };
        let host = self.server.split_once("://").map_or(&*self.server, |(_, host)| host);
        let sent = ClientRequest {
            method: request.method.as_str(),
            host: host.trim_end_matches('/'),
            status: result.parse().ok(),
            took,
        };
        self.metrics.requested(request.action.verb(), result.clone(), sent);
    }
}

/// The options of the attempts of one request.
struct Attempts<'a> {
    /// The timeout of each attempt.
    limit: Duration,
    /// The limits that each attempt needs a permit of.
    limits: Option<&'a RequestLimits>,
    /// Ends a pause before another attempt.
    interrupt: Option<Interrupt<'a>>,
}

/// A response with a success status, whose body is still to be read.
struct Accepted {
    response: Response<ResponseBody>,
    /// Kept until the body is read: until then the connection is in use.
    permit: Permit,
    /// Cancelled when its credentials are retired.
    retired: CancellationToken,
}

async fn attempt_once(
    session: &ClientSession,
    request: &KubeRequest<'_>,
    (limit, fence): (Duration, Option<Fence>),
) -> AttemptResult {
    let mut ready = request.build(fence)?;
    if let Some(authorization) = session.authorization() {
        ready.headers_mut().insert(header::AUTHORIZATION, authorization);
    }
    let response = timeout(limit, session.client().send(ready))
        .await
        .map_err(|_elapsed| RequestFailure::Timeout(limit))?
        .map_err(|it| RequestFailure::of_client(&it))?;
    let status = response.status();
    let is_accepted = match request.websocket {
        Some(_) => status == StatusCode::SWITCHING_PROTOCOLS,
        None => status.is_success(),
    };
    if is_accepted {
        return Ok(response);
    }
    if status.is_success() {
        let problem = "the server, or a proxy before it, supports no WebSocket".to_owned();
        return Err(RequestFailure::Malformed(problem));
    }
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|it| it.to_str().ok()).map(str::to_owned);
    let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX).collect();
    // An error counts as one even if its message does not arrive.
    let body = match timeout(limit, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    Err(RequestFailure::Answer(ErrorResponse::read(status.as_u16(), retry_after, &body)))
}
