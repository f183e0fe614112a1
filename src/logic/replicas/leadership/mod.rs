//! Leader election among replicas: decisions about one Lease, step by step.
//!
//! The rules are those of client-go, so that its programs and this operator can share a lease. Only the local clock is trusted: a holder
//! counts as alive until its lease has not changed for the duration of the lease. Moments are times since some start; only the stamps for
//! humans are wall time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::logic::object::resource::Resource;

#[cfg(test)]
mod tests;

/// Returns the resource of leases. Every cluster has it, so it needs no discovery.
pub fn leases() -> Resource {
    Resource {
        group: GROUP.into(),
        version: "v1".into(),
        plural: PLURAL.into(),
        kind: "Lease".into(),
        singular: "lease".into(),
        namespaced: true,
        preferred: true,
        ..Resource::default()
    }
}

/// Returns whether this is the resource of leases.
pub fn is_lease(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

const GROUP: &str = "coordination.k8s.io";
const PLURAL: &str = "leases";

/// The configuration of one election.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The identity of this holder in the lease; unique among all processes.
    pub identity: String,
    /// The name of the lease.
    pub name: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// How long other replicas wait after the last renewal.
    pub duration: Duration,
    /// A leader that has not renewed the lease for this long stops.
    pub renew_deadline: Duration,
    /// The pause between attempts.
    pub retry_period: Duration,
}

/// The role of this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaRole {
    /// Another replica leads, or none yet.
    Standby,
    /// This replica leads, as long as it renews the lease.
    Leader,
    /// This replica has led and must not act any more, for this reason. It cannot become the leader again.
    Lost(String),
}

/// A request to the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseRequest {
    /// Read the lease, to see who holds it.
    Read,
    /// Create it with this content.
    Create(Value),
    /// Replace it with this content, if its version is still the one in the content.
    Replace(Value),
}

/// The election as seen by one replica.
#[derive(Debug)]
pub struct Elector {
    terms: Terms,
    /// The last known lease, to write it back with the fields that others have set.
    lease: Option<Value>,
    /// The last renewal, and when its change was seen.
    renewal: Option<(Renewal, Duration)>,
    /// When the last accepted renewal was sent.
    renewed: Option<Duration>,
    /// Why the leadership was lost.
    lost: Option<String>,
    /// Whether the known lease may be outdated.
    must_read: bool,
    /// When the next request is due.
    due: Duration,
}

/// The renewal by a holder.
#[derive(Clone, Debug, PartialEq)]
struct Renewal {
    holder: String,
    lasts: Duration,
    content: Value,
}

impl Terms {
    /// Returns the error of the configuration, for users.
    pub fn problem(&self) -> Option<String> {
        let settings = "settings.leadership";
        if self.retry_period.is_zero() {
            return Some(format!("{settings}.retry_period must be above zero"));
        }
        if self.renew_deadline >= self.duration {
            let both = format!("{settings}.renew_deadline ({:?})", self.renew_deadline);
            let why = "or another replica could lead before this one has stopped";
            return Some(format!(
                "{both} must be shorter than {settings}.duration ({:?}), {why}",
                self.duration
            ));
        }
        if self.retry_period >= self.renew_deadline {
            let both = format!("{settings}.retry_period ({:?})", self.retry_period);
            let other = format!("{settings}.renew_deadline ({:?})", self.renew_deadline);
            return Some(format!(
                "{both} must be shorter than {other}, or one failed attempt ends the leadership"
            ));
        }
        None
    }
}

impl Elector {
    /// Creates an elector that has not read the lease yet.
    pub fn new(terms: Terms) -> Self {
        Elector {
            terms,
            lease: None,
            renewal: None,
            renewed: None,
            lost: None,
            must_read: true,
            due: Duration::ZERO,
        }
    }

    /// Returns the role at this moment.
    pub fn role(&self, now: Duration) -> ReplicaRole {
        match (&self.lost, self.deadline()) {
            (Some(reason), _) => ReplicaRole::Lost(reason.clone()),
            (None, Some(deadline)) if now >= deadline => {
                let limit = self.terms.renew_deadline;
                ReplicaRole::Lost(format!("it could not be renewed for {limit:?}"))
            }
            (None, Some(_)) => ReplicaRole::Leader,
            (None, None) => ReplicaRole::Standby,
        }
    }

    /// Returns when this replica stops leading, unless it renews the lease before.
    pub fn deadline(&self) -> Option<Duration> {
        Some(self.renewed?.saturating_add(self.terms.renew_deadline))
    }

    /// Returns when the next request is due.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Returns the holder of the lease, if known.
    pub fn holder(&self) -> Option<&str> {
        self.renewal.as_ref().map(|(renewal, _)| &*renewal.holder).filter(|it| !it.is_empty())
    }

    /// Returns the next request. `wall` is for the stamps.
    pub fn request(&self, wall: Timestamp) -> LeaseRequest {
        if self.must_read {
            return LeaseRequest::Read;
        }
        let spec = self.spec(wall);
        match &self.lease {
            Some(lease) => LeaseRequest::Replace(with_spec(lease.clone(), spec)),
            None => LeaseRequest::Create(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.terms.name, "namespace": self.terms.namespace },
                "spec": spec,
            })),
        }
    }

    /// Handles the lease that was read; `None`: it does not exist. A free lease is acquired at once.
    pub fn read(&mut self, lease: Option<Value>, now: Duration) {
        if let Some(lease) = &lease {
            let renewal = Renewal::of(lease, &self.terms);
            if self.renewed.is_some() && renewal.holder != self.terms.identity {
                let holder = if renewal.holder.is_empty() { "nobody" } else { &renewal.holder };
                self.lost = Some(format!("it is held by {holder} now"));
            }
            if self.renewal.as_ref().is_none_or(|(known, _)| *known != renewal) {
                self.renewal = Some((renewal, now));
            }
        }
        self.lease = lease;
        let free_at = self.free_at();
        // A leader renews immediately after reading: it read only because a write had failed.
        self.must_read = self.renewed.is_none() && free_at.is_some_and(|it| it > now);
        let soon = now.saturating_add(self.terms.retry_period);
        self.due = if self.must_read { free_at.map_or(soon, |it| it.min(soon)) } else { now };
    }

    /// Handles the response to a write: the lease that this replica wrote with a request sent at `sent`.
    pub fn wrote(&mut self, lease: Value, sent: Duration) {
        self.renewal = Some((Renewal::of(&lease, &self.terms), sent));
        self.lease = Some(lease);
        self.must_read = false;
        // Not when the response arrived: others may have seen the change earlier.
        self.renewed = Some(sent);
        self.due = sent.saturating_add(self.terms.retry_period);
    }

    /// Handles a failed request. Another replica may have been faster, or the request may have succeeded: only reading shows which.
    pub fn failed(&mut self, was: &LeaseRequest, is_conflict: bool, now: Duration) {
        let at_once = is_conflict && *was != LeaseRequest::Read && self.renewed.is_some();
        self.must_read = true;
        self.due = if at_once { now } else { now.saturating_add(self.terms.retry_period) };
    }

    /// Returns the lease without a holder, written by a leader that stops, so that others need not wait.
    pub fn release(&self, wall: Timestamp) -> Option<Value> {
        self.renewed?;
        let lease = self.lease.clone()?;
        let stamp = stamp(wall);
        // Some servers reject an empty holder; all of them need some duration.
        let spec = json!({
            "leaseDurationSeconds": 1,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": field(&lease, "leaseTransitions").as_i64().unwrap_or_default(),
        });
        Some(with_spec(lease, spec))
    }

    /// Returns when the lease can be acquired; `None`: at once.
    ///
    /// A deleted lease does not show that its holder has stopped: its duration must pass, too.
    fn free_at(&self) -> Option<Duration> {
        let (renewal, seen) = self.renewal.as_ref()?;
        let is_held = !renewal.holder.is_empty() && renewal.holder != self.terms.identity;
        is_held.then(|| seen.saturating_add(renewal.lasts))
    }

    fn spec(&self, wall: Timestamp) -> Value {
        let old = self.lease.as_ref().map(|it| &it["spec"]);
        let was_ours = old.is_some_and(|it| it["holderIdentity"] == self.terms.identity.as_str());
        let transitions = old.and_then(|it| it["leaseTransitions"].as_i64());
        let transitions = match (old.is_some(), was_ours) {
            (false, _) => 0,
            (true, true) => transitions.unwrap_or_default(),
            (true, false) => transitions.unwrap_or_default().saturating_add(1),
        };
        let acquired =
            old.map(|it| it["acquireTime"].clone()).filter(|it| was_ours && it.is_string());
        let up = u64::from(self.terms.duration.subsec_nanos() > 0);
        json!({
            "holderIdentity": self.terms.identity,
            "leaseDurationSeconds": self.terms.duration.as_secs().saturating_add(up).max(1),
            "acquireTime": acquired.unwrap_or_else(|| stamp(wall).into()),
            "renewTime": stamp(wall),
            "leaseTransitions": transitions,
        })
    }
}

impl Renewal {
    fn of(lease: &Value, terms: &Terms) -> Self {
        let spec = &lease["spec"];
        let said = spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        Renewal {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            lasts: said.unwrap_or(terms.duration),
            content: spec.clone(),
        }
    }
}

/// Returns a field of the spec, or null.
fn field<'a>(lease: &'a Value, name: &str) -> &'a Value {
    lease.get("spec").and_then(|it| it.get(name)).unwrap_or(&Value::Null)
}

fn with_spec(mut lease: Value, spec: Value) -> Value {
    if let Some(lease) = lease.as_object_mut() {
        lease.insert("spec".into(), spec);
    }
    lease
}

/// Formats a time as a `MicroTime` of Kubernetes: in UTC, with microseconds.
fn stamp(wall: Timestamp) -> String {
    wall.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
