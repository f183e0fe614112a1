//! One replica in a leader election: sends the requests of the elector, and reports the results.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Leadership, released::Released};
use crate::logic::{
    object::{Object, resource::Resource},
    replicas::leadership::{Elector, LeaseRequest, ReplicaRole, Terms, leases},
};
use crate::ports::{Address, ApiError, Clock, Cluster, ErrorClass, NewObject, until};
use crate::telemetry::{Health, HealthState};

/// The log target of leader election.
const TARGET: &str = "kopf.leadership";

/// The name of the part in the health report.
const PART: &str = "leader-election";

/// Time limit of releasing the lease. If it fails, other replicas wait until the lease expires.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Candidate {
    cluster: Arc<dyn Cluster>,
    terms: Terms,
    resource: Resource,
    elector: Elector,
    clock: Clock,
    health: Health,
    leadership: Leadership,
    /// The start of the elector's time measurement, on [`Clock::uptime`].
    start: Duration,
    /// The last line about the holder or a problem; each is logged once.
    logged: String,
    /// Whether the last request failed.
    is_failing: bool,
}

impl Candidate {
    pub(super) fn new(
        cluster: Arc<dyn Cluster>,
        terms: Terms,
        (clock, health): (Clock, Health),
        leadership: Leadership,
    ) -> Self {
        Candidate {
            cluster,
            elector: Elector::new(terms.clone()),
            terms,
            resource: leases(),
            clock,
            health,
            leadership,
            start: clock.uptime(),
            logged: String::new(),
            is_failing: false,
        }
    }

    /// Takes part in the election, leads, and releases the lease when `stop` is cancelled. Returns the released lease; `None` if this
    /// replica did not lead, or could not release it.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Option<Released> {
        loop {
            let role = self.elector.role(self.uptime());
            self.publish(&role);
            if let ReplicaRole::Lost(_) = role {
                return None;
            }
            let deadline = self.elector.deadline().map(|it| self.instant(it));
            tokio::select! {
                biased; // the end first, then the deadline: no renewal may start after it
                () = stop.cancelled() => break,
                () = until(deadline) => continue,
                () = time::sleep_until(self.instant(self.elector.due())) => {}
            }
            // The machine may have been suspended meanwhile, for longer than its timers show.
            if self.elector.deadline().is_some_and(|it| it <= self.uptime()) {
                continue;
            }
            let request = self.elector.request(self.clock.now());
            let sent = self.uptime();
            // A request that hangs must leave time for another one.
            let limit = Instant::now() + self.terms.renew_deadline / 2;
            let limit = deadline.map_or(limit, |it| it.min(limit));
            tokio::select! {
                biased; // the end first: releasing the lease is a separate request
                () = stop.cancelled() => break,
                answer = time::timeout_at(limit, self.ask(&request)) => self.take(&request, sent, answer),
            }
        }
        let is_released = self.release().await;
        is_released.then(|| Released { cluster: self.cluster, terms: self.terms })
    }

    async fn ask(&self, request: &LeaseRequest) -> Result<Object, ApiError> {
        match request {
            LeaseRequest::Read => self.cluster.get(self.address()).await,
            LeaseRequest::Replace(lease) => {
                self.cluster.replace(self.address(), bytes(lease)).await
            }
            LeaseRequest::Create(lease) => {
                let namespace = Some(self.terms.namespace.as_str());
                let new = NewObject {
                    resource: &self.resource,
                    namespace,
                    payload: bytes(lease),
                    backoffs: None,
                };
                self.cluster.create(new).await
            }
        }
    }

    fn take(
        &mut self,
        request: &LeaseRequest,
        sent: Duration,
        answer: Result<Result<Object, ApiError>, time::error::Elapsed>,
    ) {
        let now = self.uptime();
        let is_read = *request == LeaseRequest::Read;
        self.is_failing = false;
        match answer {
            Ok(Ok(object)) if is_read => self.elector.read(Some(Value::clone(object.body())), now),
            Ok(Ok(object)) => self.elector.wrote(Value::clone(object.body()), sent),
            Ok(Err(error)) if is_read && error.class == ErrorClass::Missing => {
                self.elector.read(None, now);
            }
            Ok(Err(error)) => {
                let is_gone = error.class == ErrorClass::Missing
                    && matches!(request, LeaseRequest::Replace(_));
                let is_conflict = error.class == ErrorClass::Conflict || is_gone;
                if !is_conflict {
                    let hint = error.hint.as_deref().map(|it| format!(" hint: {it}"));
                    self.report_failure(&format!("{error}.{}", hint.unwrap_or_default()));
                }
                self.elector.failed(request, is_conflict, now);
            }
            Err(_elapsed) => {
                self.report_failure("no response from the API server in time.");
                self.elector.failed(request, false, now);
            }
        }
    }

    /// Publishes the role: logs each change once, and updates the health report always, so that its age is right.
    fn publish(&mut self, role: &ReplicaRole) {
        let lease = self.lease();
        match role {
            ReplicaRole::Leader | ReplicaRole::Standby if self.is_failing => {}
            ReplicaRole::Leader => {
                self.log_once(&format!("This replica leads: it holds the {lease}."));
                self.health.note(PART, HealthState::Ready, &format!("leader; holds the {lease}"));
            }
            ReplicaRole::Standby => {
                if let Some(holder) = self.elector.holder().map(str::to_owned) {
                    self.log_once(&format!(
                        "This replica is a standby: the {lease} is held by {holder}."
                    ));
                    let text = format!("standby; the {lease} is held by {holder}");
                    self.health.note(PART, HealthState::Ready, &text);
                } else if self.logged.is_empty() {
                    let text = format!("reading the {lease}");
                    self.health.note(PART, HealthState::Unready, &text);
                }
            }
            ReplicaRole::Lost(reason) => {
                let text = format!("the leadership is lost: the {lease}: {reason}");
                self.health.note(PART, HealthState::Dead, &text);
            }
        }
        let deadline = self.elector.deadline().map(|it| self.start.saturating_add(it));
        self.leadership.publish(role, deadline);
    }

    fn log_once(&mut self, text: &str) {
        if self.logged != text {
            tracing::info!(target: TARGET, "{text}");
            text.clone_into(&mut self.logged);
        }
    }

    fn report_failure(&mut self, problem: &str) {
        self.is_failing = true;
        let text = format!("Cannot use the {}, retrying: {problem}", self.lease());
        self.health.note(PART, HealthState::Unready, &text);
        if self.logged != text {
            tracing::error!(target: TARGET, "{text}");
            self.logged = text;
        }
    }

    /// Releases the lease if this replica holds it. Returns whether it did.
    async fn release(&mut self) -> bool {
        let lease = self.lease();
        match time::timeout(RELEASE_TIMEOUT, self.try_release()).await {
            Ok(Ok(true)) => {
                // The remaining work does not concern other replicas, for example posting the last events.
                self.leadership.publish(&ReplicaRole::Leader, None);
                tracing::info!(target: TARGET, "Released the {lease}.");
                return true;
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::warn!(target: TARGET, "Could not release the {lease}: {error}. It expires by itself.");
            }
            Err(_elapsed) => {
                tracing::warn!(target: TARGET, "Could not release the {lease} in time. It expires by itself.");
            }
        }
        false
    }

    async fn try_release(&mut self) -> Result<bool, ApiError> {
        loop {
            let now = self.uptime();
            if self.elector.role(now) != ReplicaRole::Leader {
                return Ok(false);
            }
            let Some(lease) = self.elector.release(self.clock.now()) else { return Ok(false) };
            match self.cluster.replace(self.address(), bytes(&lease)).await {
                Ok(_released) => return Ok(true),
                // A renewal that was in progress, or a manual change.
                Err(error) if error.class == ErrorClass::Conflict => {
                    let found = self.cluster.get(self.address()).await?;
                    self.elector.read(Some(Value::clone(found.body())), now);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn address(&self) -> Address<'_> {
        Address {
            resource: &self.resource,
            namespace: Some(&self.terms.namespace),
            name: &self.terms.name,
        }
    }

    fn lease(&self) -> String {
        format!("lease '{}' in '{}'", self.terms.name, self.terms.namespace)
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime().saturating_sub(self.start)
    }

    /// Returns the moment on the clock of timers.
    fn instant(&self, moment: Duration) -> Instant {
        Instant::now() + moment.saturating_sub(self.uptime())
    }
}

fn bytes(lease: &Value) -> Bytes {
    lease.to_string().into()
}
