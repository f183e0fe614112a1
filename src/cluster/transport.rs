//! One request, with its attempts: sent through the client, judged by `retry.rs`, told by `failure.rs`.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{Method, Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::{
    failure::{Action, Answer, Failure},
    limits::{Origin, Permit, RequestLimits},
    outage::{Jitter, Outage},
    reason::reason,
    retry::{Pause, Verdict, judge},
    sessions::{Advice, Session, Sessions},
};
use crate::ports::{ApiError, Interrupt, Leadership, Metrics};
use crate::settings::{Networking, REQUEST_TIMEOUT, Settings};

/// The longest body read at once. The largest collections are some hundreds of megabytes.
const BODY_BYTES_MAX: usize = 2 << 30;

/// The longest body read of an answer that is no success; only its message matters.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// How long one attempt of a request may take that is neither a list nor a watch, and how long a watch may take to begin; unless
/// `settings.networking.request_timeout` is not its default.
const SINGLE_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The content type of JSON patches.
const JSON_PATCH: &str = "application/json-patch+json";

/// The log target of requests.
const TARGET: &str = "kopf.networking";

/// The usual type of answers.
pub(super) const JSON: &str = "application/json";

/// How the operator calls itself.
const USER_AGENT: &str = concat!("kopf/", env!("CARGO_PKG_VERSION"));

/// A body as it arrives.
pub(super) type Frames = BoxStream<'static, Result<Bytes, kube::Error>>;

/// One request, ready to be sent any number of times.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// Who waits for it.
    pub(super) of: Origin,
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

/// The connection to a cluster, and the one policy of its use.
pub(super) struct Transport {
    sessions: Sessions,
    settings: Mutex<Arc<Settings>>,
    /// Of all requests but streams.
    limits: RequestLimits,
    outage: Outage,
    /// The address, for messages; empty if unknown.
    server: String,
    default_namespace: String,
    refuses_streaming: AtomicBool,
    /// What requests that write ask before they are sent.
    fence: Mutex<Leadership>,
    /// Counts requests.
    metrics: Metrics,
}

impl<'a> Request<'a> {
    /// A GET.
    pub(super) fn get(url: String, action: Action<'a>) -> Self {
        Request {
            of: Origin::Operator,
            method: Method::GET,
            url,
            accept: JSON,
            content: None,
            action,
        }
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

    /// Returns whether carrying it out twice is as good as once.
    fn is_idempotent(&self) -> bool {
        let Action::Use { resource, .. } = &self.action else { return true };
        match (&self.method, &self.content) {
            // An event that is there twice is better than one that is lost.
            (&Method::POST, _) => self.of == Origin::Operator && resource.plural == "events",
            (&Method::PATCH, Some((JSON_PATCH, patch))) => has_test(patch),
            _ => true,
        }
    }

    /// Returns how long an attempt may take. Lists may be long; for all else the default of the settings is far too long.
    fn time_limit(&self, networking: &Networking) -> Duration {
        let limit = networking.request_timeout;
        let is_long = match &self.action {
            Action::Discover(_) => false,
            Action::Use { verb, subresource, .. } => {
                matches!(*verb, "list" | "watch") || *subresource == Some("log")
            }
        };
        if is_long || limit != REQUEST_TIMEOUT { limit } else { SINGLE_REQUEST_TIMEOUT }
    }

    /// As log lines call it: with the server, which is what is wrong most often.
    fn label(&self, server: &str) -> String {
        format!("{} {}{}", self.method, server.trim_end_matches('/'), self.url)
    }
}

impl Transport {
    /// A connection with these credentials.
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
        }
    }

    /// Has pauses of streams stretched by this.
    pub(super) fn with_jitter(self, jitter: Jitter) -> Self {
        Transport { outage: Outage::new(jitter), ..self }
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

    /// Holds for all requests from now on.
    pub(super) fn fence(&self, leadership: Leadership) {
        *self.fence.lock() = leadership;
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
        self.fetch_unless(request, networking, None).await
    }

    /// The same, but gives up instead of making a pause that the server asks for, when something newer is to be done.
    pub(super) async fn fetch_unless(
        &self,
        request: &Request<'_>,
        networking: &Networking,
        interrupt: Option<Interrupt<'_>>,
    ) -> Result<Bytes, ApiError> {
        // The permit is kept until the body is read: until then the connection is in use.
        let limit = request.time_limit(networking);
        let attempts = Attempts { limit, limits: Some(&self.limits), interrupt };
        let accepted = self.attempt(request, networking, attempts).await?;
        let Accepted { response, mut permit, retired: _ } = accepted;
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
        let failure = match permit.during(timeout(limit, body.collect())).await {
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

    /// Sends a request until it is accepted; the body is still to be read, and nothing limits how long that takes. It ends
    /// when the credentials it was asked with go out of use.
    pub(super) async fn open(
        &self,
        request: &Request<'_>,
        networking: &Networking,
        connect_timeout: Option<Duration>,
    ) -> Result<Response<Frames>, ApiError> {
        // An answer begins as soon as there is a connection: what limits the one limits the other.
        let limit = connect_timeout.or(networking.connect_timeout);
        let limit = limit.unwrap_or(SINGLE_REQUEST_TIMEOUT).min(networking.request_timeout);
        let attempts = Attempts { limit, limits: None, interrupt: None };
        let accepted = self.attempt(request, networking, attempts).await?;
        let retired = accepted.retired.cancelled_owned();
        Ok(accepted.response.map(|body| body.into_data_stream().take_until(retired).boxed()))
    }

    /// Makes the attempts of one request. Each takes a permit of its own, and the pauses between them take none: what one object has
    /// to wait for must not hold up the others. While the server rejects all credentials there is only waiting.
    async fn attempt(
        &self,
        request: &Request<'_>,
        networking: &Networking,
        Attempts { limit, limits, interrupt }: Attempts<'_>,
    ) -> Result<Accepted, ApiError> {
        let mut course = Course::new(request, networking, &self.server);
        loop {
            let mut permit = match limits {
                Some(limits) => limits.acquire(request.of, &request.action).await,
                None => Permit::default(),
            };
            // The permit is kept meanwhile: whoever waits for credentials would wait for a permit next.
            let (ticket, session) = self.sessions.acquire().await;
            course.announce();
            let sent = self.fenced(request, attempt_once(&session, request, limit));
            let sent = permit.during(sent).await;
            self.count(request, &sent);
            self.note_connection(sent.as_ref().err(), limits.is_none());
            let failure = match sent {
                Ok(response) => {
                    course.succeed();
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
                    Advice::Attempt if course.attempt == 0 => {
                        course.attempt = 1;
                        continue;
                    }
                    Advice::Attempt => {}
                    Advice::Final => return Err(self.fail(failure, &request.action)),
                }
            } else if failure.is_answer() {
                self.sessions.accepted(&ticket);
            }
            match judge(&failure, course.attempt, networking, request.is_idempotent()) {
                Verdict::Final => return Err(self.fail(failure, &request.action)),
                Verdict::Exhausted => {
                    course.give_up(&failure);
                    return Err(self.fail(failure, &request.action));
                }
                Verdict::Again(pause) => {
                    course.announce_pause(&pause, &failure);
                    if !self.pause(&pause, &failure, interrupt).await {
                        course.give_way(&pause);
                        return Err(self.fail(failure, &request.action));
                    }
                    course.attempt = course.attempt.saturating_add(1);
                }
            }
        }
    }

    /// Notes whether the server can be reached. A stream without any response says so too: a watch begins at once.
    fn note_connection(&self, failure: Option<&Failure>, is_stream: bool) {
        match failure {
            Some(Failure::Unreachable(_)) => self.outage.begin(),
            Some(Failure::Timeout(_)) if is_stream => self.outage.begin(),
            Some(Failure::Answer(_)) | None => self.outage.end(),
            Some(_) => {}
        }
    }

    /// Waits before the next attempt. Returns whether to make it.
    async fn pause(
        &self,
        pause: &Pause,
        failure: &Failure,
        interrupt: Option<Interrupt<'_>>,
    ) -> bool {
        let duration = pause.duration();
        match interrupt.filter(|_| pause.asked.is_some()) {
            Some(interrupt) => {
                return tokio::select! {
                    biased; // a pause that is complete counts as complete
                    () = sleep(duration) => true,
                    () = interrupt.wait() => false,
                };
            }
            None if matches!(failure, Failure::Unreachable(_)) => self.outage.sleep(duration).await,
            None => sleep(duration).await,
        }
        true
    }

    /// Returns what is known of the connection.
    pub(super) fn outage(&self) -> &Outage {
        &self.outage
    }

    /// Runs an attempt. One that writes is not polled any more when the operator may not act: what is not on the wire by then never is.
    async fn fenced<T>(&self, request: &Request<'_>, attempt: impl Future<Output = T>) -> T {
        let needs_no_lease = request.method == Method::GET
            || (request.of == Origin::Operator && request.action.is_about_leases());
        if needs_no_lease {
            return attempt.await;
        }
        let leadership = self.fence.lock().clone();
        leadership.while_acting(attempt).await
    }

    fn count(&self, request: &Request<'_>, sent: &Result<Response<Body>, Failure>) {
        let result = match sent {
            Ok(response) => response.status().as_u16().to_string(),
            Err(failure) => failure.label(),
        };
        self.metrics.requested(request.action.verb(), result);
    }
}

/// How the attempts of one request are made.
struct Attempts<'a> {
    /// How long each may take.
    limit: Duration,
    /// What each needs a permit of.
    limits: Option<&'a RequestLimits>,
    /// What ends a pause that the server has asked for.
    interrupt: Option<Interrupt<'a>>,
}

/// An answer that is a success.
struct Accepted {
    response: Response<Body>,
    /// Kept until the body is read: until then the connection is in use.
    permit: Permit,
    /// Cancelled when its credentials are out of use.
    retired: CancellationToken,
}

/// The attempts of one request, as the log tells them.
struct Course<'a> {
    request: &'a Request<'a>,
    server: &'a str,
    /// How many there may be.
    attempts: usize,
    /// The number of the present one, from zero.
    attempt: usize,
}

impl<'a> Course<'a> {
    fn new(request: &'a Request<'a>, networking: &Networking, server: &'a str) -> Self {
        let attempts = networking.error_backoffs.len().saturating_add(1);
        Course { request, server, attempts, attempt: 0 }
    }

    fn label(&self) -> String {
        self.request.label(self.server)
    }

    fn number(&self) -> usize {
        self.attempt.saturating_add(1)
    }

    fn announce(&self) {
        if self.attempt > 0 {
            let attempts = self.attempts;
            debug!(target: TARGET, "Request attempt #{}/{attempts}: {}", self.number(), self.label());
        }
    }

    fn succeed(&self) {
        if self.attempt > 0 {
            let attempts = self.attempts;
            debug!(target: TARGET, "Request attempt #{}/{attempts} succeeded: {}", self.number(), self.label());
        }
    }

    fn give_up(&self, failure: &Failure) {
        let attempts = self.attempts;
        error!(target: TARGET, "Request attempt #{}/{attempts} failed; escalating: {} -> {failure}", self.number(), self.label());
    }

    fn give_way(&self, pause: &Pause) {
        let seconds = pause.duration().as_secs_f64();
        debug!(target: TARGET, "The object has changed meanwhile, so the pause of {seconds}s that the server has asked for ends early: {}", self.label());
    }

    fn announce_pause(&self, pause: &Pause, failure: &Failure) {
        let attempts = self.attempts;
        if let Some(asked) = pause.asked {
            let (own, asked) = (pause.own.as_secs_f64(), asked.as_secs_f64());
            debug!(target: TARGET, "Overriding the backoff {own}s with the retry-after {asked}s from the server: {}", self.label());
        }
        error!(target: TARGET, "Request attempt #{}/{attempts} failed; will retry: {} -> {failure}", self.attempt.saturating_add(1), self.label());
    }
}

async fn attempt_once(
    session: &Session,
    request: &Request<'_>,
    limit: Duration,
) -> Result<Response<Body>, Failure> {
    let mut ready = request.build()?;
    if let Some(authorization) = session.authorization() {
        ready.headers_mut().insert(header::AUTHORIZATION, authorization);
    }
    let response = timeout(limit, session.client().send(ready))
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

/// Returns whether a JSON patch tests what it changes: then it is not applied a second time.
fn has_test(patch: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Operation<'a> {
        #[serde(borrow)]
        op: Cow<'a, str>,
    }
    let operations = serde_json::from_slice::<Vec<Operation<'_>>>(patch);
    operations.is_ok_and(|all| all.iter().any(|it| it.op == "test"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are replaced as a whole: a panic cannot leave them half-written.
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::{Action, Request};

    #[test]
    fn a_line_about_a_request_names_the_server_if_it_is_known() {
        let request = Request::get("/api".into(), Action::Discover("the cluster"));
        assert_eq!(request.label("https://example.com:6443/"), "GET https://example.com:6443/api");
        assert_eq!(request.label(""), "GET /api");
    }
}
