//! One peering object: our record in it, and those of the others.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Common, Looks, TARGET,
    requests::{self, Errand, Reply, Request},
};
use crate::logic::{
    object::Object,
    outcome::LogLevel,
    peering::{self, KnownPeers, OwnState, Place},
    reason::EventType,
};
use crate::ports::{ApiError, ErrorClass, Extent, HealthState, StreamEvent, StreamTarget, until};

/// The pause after a request that failed.
const RETRY: Duration = Duration::from_secs(2);

/// Our record is not written again sooner, if somebody removes it: two clocks that differ must not make a storm.
const REMOVED_PAUSE: Duration = Duration::from_secs(5);

/// The longest that leaving may take, after which others wait until our record expires.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A hanging request is given up after this part of the lifetime, so that there is time for others.
const PATIENCE_PARTS: u32 = 4;

/// One meeting with other operators.
pub(super) struct Member {
    common: Common,
    place: Place,
    blocker: String,
    /// The records as last seen. Moments in it count from `start`.
    known: KnownPeers,
    start: Instant,
    /// The version of the object that was judged last.
    judged: Option<String>,
    request: Option<Request>,
    /// Records to remove.
    dead: Vec<String>,
    /// When to renew our record.
    announce_at: Instant,
    /// When we last did so.
    announced: Option<Instant>,
    /// When the first of those we pause for is dead.
    look_at: Option<Instant>,
    /// Whether the object was ever there.
    is_seen: bool,
    /// The last problem, told once.
    told: String,
    /// Where to tell that we have looked.
    looks: Looks,
}

impl Member {
    /// Nothing is known yet.
    pub(super) fn new(common: Common, place: Place, looks: Looks) -> Self {
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
            look_at: None,
            is_seen: false,
            told: String::new(),
            looks,
        }
    }

    /// Meets until told to stop, then leaves.
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
                biased; // the end first; then answers, which make room for the next request; then news; time last
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
                            self.looked();
                        }
                        Some(Ok(StreamEvent::Listing | StreamEvent::Alive)) => {}
                        Some(Err(error)) => {
                            self.complain("watched", &error);
                            self.looked();
                        }
                        // Streams have no end.
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

    fn looked(&self) {
        self.looks.send_if_modified(|it| it.insert(self.place.clone()));
    }

    /// Begins the request that is due, if none is under way.
    fn begin(&mut self) {
        if self.request.is_some() {
            return;
        }
        let now = Instant::now();
        let is_looking = self.look_at.is_some_and(|it| it <= now);
        let errand = if !self.common.leadership.is_leading() {
            is_looking.then_some(Errand::Look)
        } else if !self.dead.is_empty() {
            Some(Errand::Remove(std::mem::take(&mut self.dead)))
        } else {
            // Our own change makes an event, by which other operators look again, too.
            (is_looking || self.announce_at <= now).then_some(Errand::Announce)
        };
        let Some(errand) = errand else { return };
        let limit = (self.common.settings.peering.lifetime / PATIENCE_PARTS).max(RETRY);
        self.request = Some(requests::begin(&self.common, &self.place, errand, limit));
    }

    /// When the next request is due.
    fn wake_at(&self) -> Option<Instant> {
        if self.request.is_some() {
            return None;
        }
        let announce_at = self.common.leadership.is_leading().then_some(self.announce_at);
        announce_at.into_iter().chain(self.look_at).min()
    }

    fn take(&mut self, reply: Reply) {
        let now = Instant::now();
        let is_looking = self.look_at.is_some_and(|it| it <= now);
        let is_announcing = reply.errand == Errand::Announce;
        match reply.answer {
            Some(Ok(object)) => {
                if is_announcing {
                    self.announced = Some(now);
                    self.announce_at = now + self.period();
                    self.tell_renewal("ok");
                }
                self.recover();
                if is_looking {
                    self.judge(&object);
                }
            }
            Some(Err(error)) if error.class == ErrorClass::Missing => {
                tracing::debug!(target: TARGET, "Patching was skipped: the object does not exist anymore.");
                if is_announcing {
                    self.announce_at = now + self.period();
                    self.tell_renewal("not found");
                }
                if is_looking {
                    self.judge_absence();
                }
            }
            Some(Err(error)) => {
                self.complain("written", &error);
                self.retry(now, is_looking);
            }
            None => {
                self.complain("written", &"no answer in time");
                self.retry(now, is_looking);
            }
        }
    }

    fn retry(&mut self, now: Instant, is_looking: bool) {
        self.announce_at = self.announce_at.max(now + RETRY);
        if is_looking {
            self.look_at = Some(now + RETRY);
        }
    }

    /// An event of the watch.
    fn see(&mut self, kind: Option<EventType>, object: &Object) {
        let header = object.header();
        if header.name.as_ref() != Some(&self.common.settings.peering.name) {
            return;
        }
        self.is_seen = kind != Some(EventType::Deleted);
        // Whoever wrote the records may still be at work when they are gone: they count until their time has come.
        if self.is_seen && (self.judged.is_none() || self.judged != header.resource_version) {
            self.judge(object);
        }
    }

    /// The end of a listing.
    fn miss(&mut self) {
        let settings = &self.common.settings.peering;
        if settings.mandatory && !self.is_seen {
            let kind = peering::kind(settings.clusterwide);
            let place = peering::scope_text(self.place.1.as_deref());
            let text = format!(
                "The operator is paused: peering is mandatory, and there is no {kind} '{}' {place}. \
                 It goes on when the object is created.",
                settings.name
            );
            self.warn(text);
        }
    }

    /// The object as it is now.
    fn judge(&mut self, object: &Object) {
        let body = object.body();
        if let Some(problem) = object.problem() {
            let name = &self.common.settings.peering.name;
            return self.warn(format!(
                "The peering object '{name}' cannot be read, so the peers that are known stay as they are: {problem}."
            ));
        }
        let now = self.start.elapsed();
        self.known.update(body, self.common.clock.now(), now);
        self.judged.clone_from(&object.header().resource_version);
        self.conclude(now);
    }

    /// The object is not there, so nobody can have renewed a record in it.
    fn judge_absence(&mut self) {
        let now = self.start.elapsed();
        self.known.forget_dead(now);
        if self.common.settings.peering.mandatory {
            // As at the start: without the object there is no agreement.
            self.look_at = None;
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
        self.look_at = verdict.look_again.and_then(|it| self.start.checked_add(it));
        // Our own old record needs no removal: it is replaced.
        self.dead = verdict.dead.into_iter().filter(|it| it != identity).collect();
        if let Some(announced) = self.announced.filter(|_| !verdict.is_announced) {
            self.announce_at = self.announce_at.min(announced + REMOVED_PAUSE);
        }
        self.note();
    }

    /// Removes our record, so that others need not wait for us.
    async fn leave(mut self) {
        if let Some(request) = self.request.take() {
            // It may be carried out already, and must not be carried out after our removal.
            drop(time::timeout(LEAVE_TIMEOUT, request).await);
        }
        if self.common.leadership.is_leading() {
            let errand = Errand::Remove(vec![self.common.identity.clone()]);
            let reply = requests::begin(&self.common, &self.place, errand, LEAVE_TIMEOUT).await;
            let problem = match reply.answer {
                Some(Ok(_)) => None,
                Some(Err(error)) if error.class == ErrorClass::Missing => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some("no answer in time".to_owned()),
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

    fn tell_renewal(&self, result: &str) {
        let settings = &self.common.settings.peering;
        if !settings.stealth || result != "ok" {
            let place = peering::scope_text(self.place.1.as_deref());
            tracing::debug!(target: TARGET, "Keep-alive in '{}' {place}: {result}.", settings.name);
        }
    }

    fn complain(&mut self, what: &str, problem: &dyn Problem) {
        let place = peering::scope_text(self.place.1.as_deref());
        let name = &self.common.settings.peering.name;
        let text = format!(
            "The peering '{name}' {place} cannot be {what}, and is tried again: {}",
            problem.text()
        );
        // Where peering is not asked for, an operator without the rights to it works all the same.
        let is_needed = self.common.settings.peering.mandatory;
        let state = if is_needed { HealthState::Unready } else { HealthState::Ready };
        self.common.health.note(&self.part(), state, &text);
        self.warn(text);
    }

    fn warn(&mut self, text: String) {
        if self.told != text {
            tracing::warn!(target: TARGET, "{text}");
            self.told = text;
        }
    }

    fn recover(&mut self) {
        self.told.clear();
        self.note();
    }

    fn note(&self) {
        let paused = self.common.pauses.has(&self.blocker);
        let text = if paused { "paused for other operators" } else { "in touch" };
        self.common.health.note(&self.part(), HealthState::Ready, text);
    }

    fn part(&self) -> String {
        format!("peering/{}", self.blocker)
    }
}

/// Why something cannot be done, for people.
trait Problem {
    fn text(&self) -> String;
}

impl Problem for ApiError {
    fn text(&self) -> String {
        let hint = self.hint.as_deref().map(|it| format!(" hint: {it}")).unwrap_or_default();
        format!("{self}.{hint}")
    }
}

impl Problem for &str {
    fn text(&self) -> String {
        format!("{self}.")
    }
}

async fn reply(request: &mut Option<Request>) -> Reply {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}
