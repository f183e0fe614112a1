//! One peering object: keeps the record of this operator in it, and reads the records of others.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Common, ReadPlaces, TARGET,
    requests::{self, PeeringReply, PeeringRequest, RequestPurpose},
};
use crate::logic::{
    handlers::outcome::LogLevel,
    object::{Object, reason::EventType},
    replicas::peering::{self, KnownPeers, OwnState, PeeringScope},
};
use crate::ports::{ApiError, ErrorClass, Extent, StreamEvent, StreamTarget, until};
use crate::telemetry::HealthState;

/// The pause after a failed request.
const RETRY: Duration = Duration::from_secs(2);

/// The minimum time until the record of this operator is written again after its removal: two operators whose clocks differ must not keep
/// removing and writing records.
const REMOVED_PAUSE: Duration = Duration::from_secs(5);

/// Time limit of leaving. If it fails, other operators wait until the record of this operator expires.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A hanging request is aborted after this fraction of the lifetime, to leave time for another one.
const PATIENCE_PARTS: u32 = 4;

/// One peering object and its peers.
pub(super) struct Member {
    common: Common,
    place: PeeringScope,
    blocker: String,
    /// The records as last seen. Their moments count from `start`.
    known: KnownPeers,
    start: Instant,
    /// The version of the object that was evaluated last.
    judged: Option<String>,
    request: Option<PeeringRequest>,
    /// The identities of dead peers whose records are still to be removed.
    dead: Vec<String>,
    /// The time to renew the record of this operator.
    announce_at: Instant,
    /// The time when the record of this operator was last renewed.
    announced: Option<Instant>,
    /// The time when the record of the first peer expires that pauses this operator.
    read_at: Option<Instant>,
    /// Whether the object was ever seen.
    is_seen: bool,
    /// The last problem; each is logged once.
    logged: String,
    /// Reports that the object was read.
    read_places: ReadPlaces,
}

impl Member {
    /// Creates a member without known peers.
    pub(super) fn new(common: Common, place: PeeringScope, read_places: ReadPlaces) -> Self {
        Member {
            blocker: common.blocker(&place),
            common,
            place,
            known: KnownPeers::default(),
            start: Instant::now(),
            judged: None,
            request: None,
            dead: Vec::new(),
            announce_at: Instant::now(),
            announced: None,
            read_at: None,
            is_seen: false,
            logged: String::new(),
            read_places,
        }
    }

    /// Follows the peering object until `stop`, then leaves it.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let (resource, namespace) = &self.place;
        let mut events = self.common.cluster.stream(StreamTarget {
            resource: Arc::new(resource.clone()),
            namespace: namespace.clone(),
            extent: Extent::Whole,
            settings: Arc::clone(&self.common.settings),
            restrictions: None,
        });
        loop {
            self.begin();
            let leadership = self.common.leadership.clone();
            let is_standby = !leadership.is_leading();
            let wake_at = self.wake_at();
            tokio::select! {
                biased; // the end first; then responses, which allow the next request; then events; timers last
                () = stop.cancelled() => break,
                reply = reply(&mut self.request) => {
                    self.request = None;
                    self.take(reply);
                }
                event = events.next() => {
                    match event {
                        Some(Ok(StreamEvent::Object(kind, object))) => self.see(kind, &object),
                        Some(Ok(StreamEvent::Listed)) => {
                            self.miss();
                            self.note_read();
                        }
                        Some(Ok(StreamEvent::Listing | StreamEvent::Alive)) => {}
                        Some(Err(error)) => {
                            self.report_failure("watch", &error);
                            self.note_read();
                        }
                        // Streams never end.
                        None => break,
                    }
                },
                () = leadership.until_leading(), if is_standby => self.announce_at = Instant::now(),
                () = until(wake_at) => {}
            }
        }
        drop(events);
        self.leave().await;
    }

    fn note_read(&self) {
        self.read_places.send_if_modified(|it| it.insert(self.place.clone()));
    }

    /// Starts the request that is due, unless another one is in progress.
    fn begin(&mut self) {
        if self.request.is_some() {
            return;
        }
        let now = Instant::now();
        let is_reading = self.read_at.is_some_and(|it| it <= now);
        let purpose = if !self.common.leadership.is_leading() {
            is_reading.then_some(RequestPurpose::Read)
        } else if !self.dead.is_empty() {
            Some(RequestPurpose::Remove(std::mem::take(&mut self.dead)))
        } else {
            // The change causes an event, which makes other operators read the object, too.
            (is_reading || self.announce_at <= now).then_some(RequestPurpose::Announce)
        };
        let Some(purpose) = purpose else { return };
        let limit = (self.common.settings.peering.lifetime / PATIENCE_PARTS).max(RETRY);
        self.request = Some(requests::begin(&self.common, &self.place, purpose, limit));
    }

    /// Returns when the next request is due.
    fn wake_at(&self) -> Option<Instant> {
        if self.request.is_some() {
            return None;
        }
        let announce_at = self.common.leadership.is_leading().then_some(self.announce_at);
        announce_at.into_iter().chain(self.read_at).min()
    }

    fn take(&mut self, reply: PeeringReply) {
        let now = Instant::now();
        let is_reading = self.read_at.is_some_and(|it| it <= now);
        let is_announcing = reply.purpose == RequestPurpose::Announce;
        match reply.answer {
            Some(Ok(object)) => {
                if is_announcing {
                    self.announced = Some(now);
                    self.announce_at = now + self.period();
                    self.log_renewal("ok");
                }
                self.recover();
                if is_reading {
                    self.judge(&object);
                }
            }
            Some(Err(error)) if error.class == ErrorClass::Missing => {
                tracing::debug!(target: TARGET, "Patching was skipped: the object does not exist anymore.");
                if is_announcing {
                    self.announce_at = now + self.period();
                    self.log_renewal("not found");
                }
                if is_reading {
                    self.judge_absence();
                }
            }
            Some(Err(error)) => {
                self.report_failure("update", &error);
                self.retry(now, is_reading);
            }
            None => {
                self.report_failure("update", &"no response in time");
                self.retry(now, is_reading);
            }
        }
    }

    fn retry(&mut self, now: Instant, is_reading: bool) {
        self.announce_at = self.announce_at.max(now + RETRY);
        if is_reading {
            self.read_at = Some(now + RETRY);
        }
    }

    /// Processes an event of the watch.
    fn see(&mut self, kind: Option<EventType>, object: &Object) {
        let header = object.header();
        if header.name.as_ref() != Some(&self.common.settings.peering.name) {
            return;
        }
        self.is_seen = kind != Some(EventType::Deleted);
        // The operators behind removed records may still be running: their records count until they expire.
        if self.is_seen && (self.judged.is_none() || self.judged != header.resource_version) {
            self.judge(object);
        }
    }

    /// Processes the end of a listing.
    fn miss(&mut self) {
        let settings = &self.common.settings.peering;
        if settings.mandatory && !self.is_seen {
            let kind = peering::kind(settings.clusterwide);
            let place = peering::scope_text(self.place.1.as_deref());
            let text = format!(
                "The operator is paused: peering is mandatory, and there is no {kind} '{}' {place}. \
                 It resumes when the object is created.",
                settings.name
            );
            self.warn(text);
        }
    }

    /// Evaluates the present object.
    fn judge(&mut self, object: &Object) {
        let body = object.body();
        if let Some(problem) = object.problem() {
            let name = &self.common.settings.peering.name;
            return self.warn(format!(
                "Cannot read the peering object '{name}', keeping the known peers: {problem}."
            ));
        }
        let now = self.start.elapsed();
        self.known.update(body, self.common.clock.now(), now);
        self.judged.clone_from(&object.header().resource_version);
        self.conclude(now);
    }

    /// Evaluates a missing object: no peer can have renewed a record in it.
    fn judge_absence(&mut self) {
        let now = self.start.elapsed();
        self.known.forget_dead(now);
        if self.common.settings.peering.mandatory {
            // As at the start: without the object there is no agreement.
            self.read_at = None;
            self.miss();
        } else {
            self.conclude(now);
        }
    }

    fn conclude(&mut self, now: Duration) {
        let Common { settings, pauses, identity, .. } = &self.common;
        let own = OwnState {
            identity,
            priority: settings.peering.priority,
            shares: !settings.watching.shard_selectors.is_empty(),
            is_paused: pauses.has(&self.blocker),
        };
        let verdict = peering::judge(&self.known, own, now);
        for line in &verdict.lines {
            match line.level {
                LogLevel::Debug => tracing::debug!(target: TARGET, "{}", line.text),
                LogLevel::Info => tracing::info!(target: TARGET, "{}", line.text),
                LogLevel::Warning => tracing::warn!(target: TARGET, "{}", line.text),
                LogLevel::Error => tracing::error!(target: TARGET, "{}", line.text),
            }
        }
        pauses.set(&self.blocker, verdict.pause);
        self.read_at = verdict.look_again.and_then(|it| self.start.checked_add(it));
        // The old record of this operator is replaced, not removed.
        self.dead = verdict.dead.into_iter().filter(|it| it != identity).collect();
        if let Some(announced) = self.announced.filter(|_| !verdict.is_announced) {
            self.announce_at = self.announce_at.min(announced + REMOVED_PAUSE);
        }
        self.note();
    }

    /// Removes the record of this operator, so that others need not wait for its expiry.
    async fn leave(mut self) {
        if let Some(request) = self.request.take() {
            // The server may have processed it already, and must not process it after the removal.
            drop(time::timeout(LEAVE_TIMEOUT, request).await);
        }
        if self.common.leadership.is_leading() {
            let purpose = RequestPurpose::Remove(vec![self.common.identity.clone()]);
            let reply = requests::begin(&self.common, &self.place, purpose, LEAVE_TIMEOUT).await;
            let problem = match reply.answer {
                Some(Ok(_)) => None,
                Some(Err(error)) if error.class == ErrorClass::Missing => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some("no response in time".to_owned()),
            };
            if let Some(problem) = problem {
                tracing::error!(target: TARGET, "Couldn't remove self from the peering. Ignoring. ({problem})");
            }
        }
        self.common.pauses.set(&self.blocker, false);
        self.common.health.forget(&self.part());
    }

    fn period(&self) -> Duration {
        let margin = fastrand::u64(peering::MARGIN_SECONDS);
        peering::period(self.common.settings.peering.lifetime, margin)
    }

    fn log_renewal(&self, result: &str) {
        let settings = &self.common.settings.peering;
        if !settings.stealth || result != "ok" {
            let place = peering::scope_text(self.place.1.as_deref());
            tracing::debug!(target: TARGET, "Keep-alive in '{}' {place}: {result}.", settings.name);
        }
    }

    fn report_failure(&mut self, what: &str, problem: &dyn ProblemMessage) {
        let place = peering::scope_text(self.place.1.as_deref());
        let name = &self.common.settings.peering.name;
        let text =
            format!("Cannot {what} the peering '{name}' {place}, retrying: {}", problem.text());
        // Without mandatory peering, an operator works without permission for it, too.
        let is_needed = self.common.settings.peering.mandatory;
        let state = if is_needed { HealthState::Unready } else { HealthState::Ready };
        self.common.health.note(&self.part(), state, &text);
        self.warn(text);
    }

    fn warn(&mut self, text: String) {
        if self.logged != text {
            tracing::warn!(target: TARGET, "{text}");
            self.logged = text;
        }
    }

    fn recover(&mut self) {
        self.logged.clear();
        self.note();
    }

    fn note(&self) {
        let paused = self.common.pauses.has(&self.blocker);
        let text = if paused { "paused for other operators" } else { "watching" };
        self.common.health.note(&self.part(), HealthState::Ready, text);
    }

    fn part(&self) -> String {
        format!("peering/{}", self.blocker)
    }
}

/// The message of a problem, for users.
trait ProblemMessage {
    fn text(&self) -> String;
}

impl ProblemMessage for ApiError {
    fn text(&self) -> String {
        let hint = self.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        format!("{self}.{hint}")
    }
}

impl ProblemMessage for &str {
    fn text(&self) -> String {
        format!("{self}.")
    }
}

async fn reply(request: &mut Option<PeeringRequest>) -> PeeringReply {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}
