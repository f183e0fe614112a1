//! The first hop of an event: lists a resource, then reads its changes line by line, indefinitely.
//!
//! A protocol with few states: [`Watcher::step`] consumes a state and returns the next, optionally with an event. The contract is
//! `tests/vectors/watch-streams.json`. Unlike in Kopf, an error is returned and then overcome: the stream lists again after a pause
//! that grows up to [`PAUSE_MAX`]. After: `reactor/streams/`.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream, stream::BoxStream};
use tokio::time::{Instant, timeout_at};
use tracing::{debug, trace, warn};

use super::{
    decode::{ListChunk, WatchLine},
    failure::{Action, ErrorResponse, RequestFailure},
    lines::{Broken, LINE_BYTES_MAX, LineReader},
    reason::one_line,
    recent::RecentObjects,
    request::{JSON, KubeRequest},
    transport::Transport,
    url,
};
use crate::logic::{handlers::selector::Restrictions, object::reason::EventType};
use crate::ports::{ApiError, ErrorClass, Extent, StreamEvent, StreamTarget};
use crate::telemetry::{HealthState, Pulse};

/// The log target of streams.
const TARGET: &str = "kopf.watch";

/// The first pause after a returned error: an earlier attempt would only return it again.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Maximum pause between attempts that fail repeatedly.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The pause before the second consecutive list after an expired version; as in client-go.
const PAUSE_AFTER_EXPIRY: Duration = Duration::from_millis(800);

/// A watch that has lasted this long does not count as a failure, however it ends.
const STEADY: Duration = Duration::from_secs(5);

/// Minimum pause, whatever the settings.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// Maximum number of characters of an unknown event in the log.
const UNKNOWN_CHARS: usize = 512;

/// Requests metadata only. Servers reject the type of a list for a watch and vice versa, so there are two; servers without support
/// for partial objects send whole ones.
const METADATA_OF_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA_OF_WATCH: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A stream. Dropping it closes the connection.
struct Watcher {
    transport: Arc<Transport>,
    recent: Arc<RecentObjects>,
    target: StreamTarget,
    path: String,
    /// The selectors of the settings.
    restrictions: Restrictions,
    /// The pulse that reports the health of the stream.
    pulse: Arc<Pulse>,
    /// Consecutive failures; the pauses grow with them. A list does not reset them: a resource that can be listed but not watched
    /// would be listed continuously.
    failures: u32,
}

/// The next action of the stream.
enum State {
    /// Request the objects, or their next page.
    Listing { token: Option<String> },
    /// Return the objects of a page.
    Handing(ListChunk),
    /// Request the changes since this version, or the objects in the form of changes.
    Connecting(Since),
    /// Wait for the next change.
    Watching(Watch),
    /// Wait before listing, or before connecting again.
    Pausing { pause: Duration, next: AfterPause },
}

/// The action after a pause.
enum AfterPause {
    List,
    Connect(Since),
}

/// The start of a watch.
#[derive(Clone)]
enum Since {
    /// The current objects: the watch begins with the content of a list.
    Start,
    /// After this version; without one, at any.
    Version(Option<String>),
}

/// An open watch, and when it has to be replaced.
struct Watch {
    lines: LineReader,
    /// The last version seen; the next watch continues from here.
    since: Since,
    /// When it was opened.
    opened_at: Instant,
    /// When it has been inactive for too long.
    inactive_at: Instant,
    /// When its maximum time is over.
    ends_at: Option<Instant>,
    /// Whether any line was received.
    has_received: bool,
}

/// The end of the wait for a line.
enum ReceivedLine {
    Line(Bytes),
    Nothing,
    End,
    Broken(Broken),
}

/// The result of a step: an optional event, and the next state.
type StreamStep = (Option<Result<StreamEvent, ApiError>>, State);

/// Returns the objects of the target and then their changes.
pub(super) fn stream(
    transport: Arc<Transport>,
    recent: Arc<RecentObjects>,
    target: StreamTarget,
    pulse: Arc<Pulse>,
) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
    let path = url::collection(&target.resource, target.namespace.as_deref());
    let of_settings = || Restrictions::of(&target.resource, &target.settings.watching);
    let restrictions = target.restrictions.clone().unwrap_or_else(of_settings);
    let watcher = Watcher { transport, recent, target, path, restrictions, pulse, failures: 0 };
    debug!(target: TARGET, "Starting the watch-stream for {watcher}.");
    let start = watcher.start();
    // Moved for each event.
    let start = (Box::new(watcher), start);
    stream::unfold(start, |(mut watcher, mut state)| async move {
        loop {
            let (event, next) = watcher.step(state).await;
            state = next;
            if let Some(event) = event {
                return Some((event, (watcher, state)));
            }
        }
    })
    .boxed()
}

impl Watcher {
    async fn step(&mut self, state: State) -> StreamStep {
        match state {
            State::Listing { token } => self.list(token).await,
            State::Handing(page) => self.hand_over(page),
            State::Connecting(since) => self.connect(since).await,
            State::Watching(watch) => self.watch(watch).await,
            State::Pausing { pause, next } => {
                self.transport.outage().sleep(pause).await;
                let next = match next {
                    AfterPause::List => self.start(),
                    AfterPause::Connect(since) => State::Connecting(since),
                };
                (None, next)
            }
        }
    }

    /// Returns the first state.
    fn start(&self) -> State {
        if self.target.settings.watching.initial_streaming && !self.transport.refuses_streaming() {
            State::Connecting(Since::Start)
        } else {
            State::Listing { token: None }
        }
    }

    async fn list(&mut self, token: Option<String>) -> StreamStep {
        let settings = Arc::clone(&self.target.settings);
        // A new list replaces all known objects; its next page adds to them.
        let event = token.is_none().then_some(Ok(StreamEvent::Listing));
        let request = list_request(
            &self.path,
            &self.restrictions,
            settings.watching.chunk_size,
            token,
            self.action("list"),
        );
        let request = request.accepting(self.accept(METADATA_OF_LIST));
        let answer = self.transport.fetch(&request, &settings.networking).await;
        let page = match answer {
            Ok(body) => ListChunk::parse(&body).map_err(|error| self.malformed("list", &error)),
            Err(error) => Err(error),
        };
        match page {
            Ok(page) => (event, State::Handing(page)),
            Err(error) => self.after_failure(error, AfterPause::List),
        }
    }

    fn hand_over(&mut self, mut page: ListChunk) -> StreamStep {
        match page.next() {
            Some(Ok(object)) => {
                (Some(Ok(StreamEvent::Object(None, Arc::new(object)))), State::Handing(page))
            }
            Some(Err(error)) => {
                warn!(target: TARGET, "Ignoring a malformed object in the list of {self}: {error}");
                (None, State::Handing(page))
            }
            None if page.token.is_some() => (None, State::Listing { token: page.token }),
            None => {
                self.pulse.recover("listed");
                let since = Since::Version(page.version);
                (Some(Ok(StreamEvent::Listed)), State::Connecting(since))
            }
        }
    }

    async fn connect(&mut self, since: Since) -> StreamStep {
        let settings = Arc::clone(&self.target.settings);
        let watching = &settings.watching;
        let now = Instant::now();
        let silence = watching.inactivity_timeout.max(PAUSE_MIN);
        let inactive_at = later(now, silence);
        let ends_at = watching.client_timeout.map(|it| later(now, it.max(PAUSE_MIN)));
        let request = self.watch_request(&since).accepting(self.accept(METADATA_OF_WATCH));
        // The time to connect, retries included, counts as inactivity.
        let deadline = ends_at.map_or(inactive_at, |it| it.min(inactive_at));
        let opening = self.transport.open(&request, &settings.networking, watching.connect_timeout);
        match timeout_at(deadline, opening).await {
            Ok(Ok(response)) => {
                self.pulse.recover("watching");
                let lines = LineReader::new(response.into_body());
                let event = match since {
                    Since::Start => StreamEvent::Listing,
                    Since::Version(_) => StreamEvent::Alive,
                };
                let opened_at = Instant::now();
                let watch =
                    Watch { lines, since, opened_at, inactive_at, ends_at, has_received: false };
                (Some(Ok(event)), State::Watching(watch))
            }
            Err(_) => self.after_silence(deadline == inactive_at, since),
            // Known objects are still valid: only the watch could not begin.
            Ok(Err(error)) if error.class == ErrorClass::Retry => {
                self.after_failure(error, AfterPause::Connect(since))
            }
            Ok(Err(error)) if is_refusal_to_stream(&error, &since) => {
                if self.transport.refuse_streaming() {
                    warn!(
                        target: TARGET,
                        "The server does not stream initial lists (settings.watching.initial_streaming); listing \
                         objects instead. {error}"
                    );
                }
                (None, State::Listing { token: None })
            }
            Ok(Err(error)) => self.after_failure(error, AfterPause::List),
        }
    }

    async fn watch(&mut self, mut watch: Watch) -> StreamStep {
        let deadline = watch.ends_at.map_or(watch.inactive_at, |it| it.min(watch.inactive_at));
        let received = match timeout_at(deadline, watch.lines.next()).await {
            Err(_) => ReceivedLine::Nothing,
            Ok(None) => ReceivedLine::End,
            Ok(Some(Ok(line))) => ReceivedLine::Line(line),
            Ok(Some(Err(broken))) => ReceivedLine::Broken(broken),
        };
        match received {
            ReceivedLine::Line(line) => self.take(watch, &line),
            ReceivedLine::Nothing => {
                self.note_life(&watch);
                self.after_silence(deadline == watch.inactive_at, watch.since)
            }
            ReceivedLine::End => self.after_end(watch),
            ReceivedLine::Broken(Broken::Payload(reason)) => {
                trace!(target: TARGET, "The watch-stream for {self} was interrupted: {reason}");
                self.after_end(watch)
            }
            ReceivedLine::Broken(Broken::TooLong) => {
                let reason = format!("a line is longer than {LINE_BYTES_MAX} bytes");
                let failure = RequestFailure::Malformed(reason);
                let error = self.transport.fail(failure, &self.action("watch"));
                self.after_failure(error, AfterPause::List)
            }
        }
    }

    fn take(&mut self, mut watch: Watch, line: &Bytes) -> StreamStep {
        let parsed = match WatchLine::parse(line, &self.recent) {
            Ok(parsed) => parsed,
            Err(error) => {
                // A broken connection leaves an incomplete line: the next watch receives it completely.
                if watch.lines.has_ended() {
                    return self.after_end(watch);
                }
                return self.after_failure(self.malformed("watch", &error), AfterPause::List);
            }
        };
        watch.has_received = true;
        self.pulse.beat();
        self.note_life(&watch);
        let silence = self.target.settings.watching.inactivity_timeout.max(PAUSE_MIN);
        watch.inactive_at = later(Instant::now(), silence);
        match parsed {
            WatchLine::Event(kind, object) => {
                let kind = match &mut watch.since {
                    Since::Start => Some(kind).filter(|it| *it != EventType::Added),
                    Since::Version(last) => {
                        if let Some(version) = &object.header().resource_version {
                            *last = Some(version.clone());
                        }
                        Some(kind)
                    }
                };
                (Some(Ok(StreamEvent::Object(kind, object))), State::Watching(watch))
            }
            WatchLine::Bookmark(version, is_end) => {
                let event = match &mut watch.since {
                    Since::Start if is_end => {
                        watch.since = Since::Version(version);
                        StreamEvent::Listed
                    }
                    // Further initial objects follow.
                    Since::Start => StreamEvent::Alive,
                    Since::Version(last) => {
                        *last = version.or(last.take());
                        StreamEvent::Alive
                    }
                };
                (Some(Ok(event)), State::Watching(watch))
            }
            WatchLine::Refusal(code, text) => {
                self.after_failure(self.refused(code, text), AfterPause::List)
            }
            WatchLine::Unknown => {
                let text = one_line(&String::from_utf8_lossy(line), UNKNOWN_CHARS);
                warn!(target: TARGET, "Ignoring an unsupported event type: {text}");
                (None, State::Watching(watch))
            }
        }
    }

    /// Continues after the end of a watch, which is normal. Only a watch without any line is followed by a pause: a server that
    /// closes all watches must not be called in a tight loop.
    fn after_end(&mut self, watch: Watch) -> StreamStep {
        self.note_life(&watch);
        let pause = self.target.settings.watching.reconnect_backoff.max(PAUSE_MIN);
        if watch.has_received || watch.opened_at.elapsed() >= pause {
            return (None, State::Connecting(watch.since));
        }
        let pause = self.transport.outage().jitter().stretch(pause);
        (None, State::Pausing { pause, next: AfterPause::Connect(watch.since) })
    }

    /// Resets the failures if a watch has lasted for some seconds.
    fn note_life(&mut self, watch: &Watch) {
        if watch.opened_at.elapsed() >= STEADY {
            self.failures = 0;
        }
    }

    fn after_silence(&self, inactive: bool, since: Since) -> StreamStep {
        if inactive {
            debug!(target: TARGET, "Watch-stream for {self} is inactive, reconnecting.");
        }
        (None, State::Connecting(since))
    }

    /// Continues after a pause. Transient errors are not returned: the attempts were already logged.
    fn after_failure(&mut self, error: ApiError, next: AfterPause) -> StreamStep {
        let backoff = self.target.settings.watching.reconnect_backoff;
        if error.class == ErrorClass::Expired {
            // Not a failure, but expected after an interruption; unless it occurs repeatedly.
            debug!(target: TARGET, "Restarting the watch-stream for {self}.");
            let least = if self.failures == 0 { Duration::ZERO } else { PAUSE_AFTER_EXPIRY / 2 };
            let pause = self.next_pause(backoff, least);
            return (None, State::Pausing { pause, next });
        }
        self.pulse.set(HealthState::Unready, &error.message);
        if is_quiet(&error) {
            let pause = self.next_pause(backoff, Duration::ZERO);
            return (None, State::Pausing { pause, next });
        }
        let pause = self.next_pause(backoff.max(PAUSE_AFTER_ERROR), Duration::ZERO);
        (Some(Err(error)), State::Pausing { pause, next })
    }

    /// Returns the pause after a failure: doubled for each consecutive one, as is `least`, and stretched at random.
    fn next_pause(&mut self, first: Duration, least: Duration) -> Duration {
        let first = first.max(PAUSE_MIN);
        let factor = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        let pause = first.max(least).saturating_mul(factor).min(PAUSE_MAX.max(first));
        self.transport.outage().jitter().stretch(pause)
    }

    /// Returns the media types to request; `metadata` is the type for metadata only.
    fn accept(&self, metadata: &'static str) -> &'static str {
        match self.target.extent {
            Extent::Whole => JSON,
            Extent::Metadata => metadata,
        }
    }

    fn watch_request(&self, since: &Since) -> KubeRequest<'_> {
        let mut parameters =
            vec![("watch", "true".to_owned()), ("allowWatchBookmarks", "true".into())];
        parameters.extend(self.restrictions.parameters());
        let version = match since {
            Since::Start => &None,
            Since::Version(version) => version,
        };
        parameters.extend(version.clone().map(|it| ("resourceVersion", it)));
        // Fractions are sent as set, although Kubernetes accepts whole seconds only.
        let timeout = self.target.settings.watching.server_timeout;
        parameters.extend(timeout.map(|it| ("timeoutSeconds", it.as_secs_f64().to_string())));
        if let Since::Start = since {
            parameters.push(("sendInitialEvents", "true".into()));
            parameters.push(("resourceVersionMatch", "NotOlderThan".into()));
        }
        KubeRequest::get(url::with_query(&self.path, &parameters), self.action("watch"))
    }

    fn action(&self, verb: &'static str) -> Action<'_> {
        Action::Use {
            verb,
            resource: &self.target.resource,
            namespace: self.target.namespace.as_deref(),
            name: None,
            subresource: None,
        }
    }

    /// Returns the error that was received inside a watch.
    fn refused(&self, status: u16, message: String) -> ApiError {
        let answer = ErrorResponse { status, message, ..ErrorResponse::default() };
        self.transport.fail(RequestFailure::Answer(answer), &self.action("watch"))
    }

    fn malformed(&self, verb: &'static str, error: &serde_json::Error) -> ApiError {
        self.transport.fail(RequestFailure::Malformed(error.to_string()), &self.action(verb))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        debug!(target: TARGET, "Stopping the watch-stream for {self}.");
    }
}

impl fmt::Display for Watcher {
    /// Formats the resource and its scope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamTarget { resource, namespace, .. } = &self.target;
        match namespace {
            Some(namespace) => write!(f, "{resource} in '{namespace}'"),
            None => write!(f, "{resource} cluster-wide"),
        }
    }
}

/// Creates a request for a page of a list.
pub(super) fn list_request<'a>(
    path: &str,
    restrictions: &Restrictions,
    chunk_size: Option<u32>,
    token: Option<String>,
    action: Action<'a>,
) -> KubeRequest<'a> {
    let limit = chunk_size.map(|it| ("limit", it.to_string()));
    let token = token.map(|it| ("continue", it));
    let parameters: Vec<_> =
        limit.into_iter().chain(restrictions.parameters()).chain(token).collect();
    KubeRequest::get(url::with_query(path, &parameters), action)
}

/// Returns whether the server does not support objects in the form of changes.
fn is_refusal_to_stream(error: &ApiError, since: &Since) -> bool {
    matches!(since, Since::Start) && matches!(error.status, Some(400 | 422))
}

/// Returns whether an error is transient: no response, or too many requests.
fn is_quiet(error: &ApiError) -> bool {
    error.class == ErrorClass::Retry && matches!(error.status, None | Some(429))
}

/// Returns a moment in the future, however far away.
fn later(now: Instant, pause: Duration) -> Instant {
    // Thirty years count as never, as in tokio.
    const NEVER: Duration = Duration::from_hours(24 * 365 * 30);
    now.checked_add(pause).unwrap_or(now + NEVER)
}
