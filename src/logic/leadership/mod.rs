//! Who of several replicas leads: decisions about one Lease, step by step.
//!
//! The rules are those of client-go, so that its programs and ours can share a lease. Nobody's clock is trusted but our own:
//! a holder counts as alive until its lease has not changed for as long as the lease lasts. Moments are times since some
//! start, and only stamps for people are wall time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::resource::Resource;

#[cfg(test)]
mod tests;

/// Returns the resource of leases. Every cluster has it: there is nothing to discover.
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

/// The rules of one election.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The holder, as the lease names it; no other process may have the same.
    pub identity: String,
    /// The name of the lease.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Others wait so long after the last sign of life.
    pub duration: Duration,
    /// A leader that could not renew the lease for so long stops.
    pub renew_deadline: Duration,
    /// The pause between attempts.
    pub retry_period: Duration,
}

/// What we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Somebody else leads, or nobody yet.
    Standby,
    /// We lead.
    Leader,
    /// We led, and must not act any more. For the sake of others there is no way back.
    Lost(String),
}

/// What to ask the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Read the lease.
    Read,
    /// Create it with this content.
    Create(Value),
    /// Replace it by this content, if it still has the version in it.
    Replace(Value),
}

/// One replica.
#[derive(Debug)]
pub struct Elector {
    terms: Terms,
    /// The lease as we know it, to write it back with all that others put there.
    lease: Option<Value>,
    /// What the holder writes, and when we saw it change.
    sign: Option<(Sign, Duration)>,
    /// When we sent the last renewal that was accepted.
    renewed: Option<Duration>,
    /// Why we do not lead any more.
    lost: Option<String>,
    /// Whether what we know may be old.
    must_read: bool,
    /// When the next request is due.
    due: Duration,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
struct Sign {
    holder: String,
    lasts: Duration,
    content: Value,
}

impl Terms {
    /// What makes no sense in them, for users.
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
    /// A replica that has not looked yet.
    pub fn new(terms: Terms) -> Self {
        Elector {
            terms,
            lease: None,
            sign: None,
            renewed: None,
            lost: None,
            must_read: true,
            due: Duration::ZERO,
        }
    }

    /// What we are at this moment.
    pub fn role(&self, now: Duration) -> Role {
        match (&self.lost, self.deadline()) {
            (Some(reason), _) => Role::Lost(reason.clone()),
            (None, Some(deadline)) if now >= deadline => {
                let limit = self.terms.renew_deadline;
                Role::Lost(format!("it could not be renewed for {limit:?}"))
            }
            (None, Some(_)) => Role::Leader,
            (None, None) => Role::Standby,
        }
    }

    /// When we stop leading, unless the lease is renewed before.
    pub fn deadline(&self) -> Option<Duration> {
        Some(self.renewed?.saturating_add(self.terms.renew_deadline))
    }

    /// When the next request is due.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Who holds the lease, as far as we know.
    pub fn holder(&self) -> Option<&str> {
        self.sign.as_ref().map(|(sign, _)| &*sign.holder).filter(|it| !it.is_empty())
    }

    /// The request that is due. `wall` is for the stamps.
    pub fn request(&self, wall: Timestamp) -> Request {
        if self.must_read {
            return Request::Read;
        }
        let spec = self.spec(wall);
        match &self.lease {
            Some(lease) => Request::Replace(with_spec(lease.clone(), spec)),
            None => Request::Create(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.terms.name, "namespace": self.terms.namespace },
                "spec": spec,
            })),
        }
    }

    /// The lease was read; `None`: it is not there. A free one is taken at once.
    pub fn read(&mut self, lease: Option<Value>, now: Duration) {
        if let Some(lease) = &lease {
            let sign = Sign::of(lease, &self.terms);
            if self.renewed.is_some() && sign.holder != self.terms.identity {
                let holder = if sign.holder.is_empty() { "nobody" } else { &sign.holder };
                self.lost = Some(format!("it is held by {holder} now"));
            }
            if self.sign.as_ref().is_none_or(|(known, _)| *known != sign) {
                self.sign = Some((sign, now));
            }
        }
        self.lease = lease;
        let free_at = self.free_at();
        // A leader renews at once what it has read: reading was needed because writing failed.
        self.must_read = self.renewed.is_none() && free_at.is_some_and(|it| it > now);
        let soon = now.saturating_add(self.terms.retry_period);
        self.due = if self.must_read { free_at.map_or(soon, |it| it.min(soon)) } else { now };
    }

    /// The lease was written by us, with a request sent then.
    pub fn wrote(&mut self, lease: Value, sent: Duration) {
        self.sign = Some((Sign::of(&lease, &self.terms), sent));
        self.lease = Some(lease);
        self.must_read = false;
        // Not when the answer came: others may have seen the change before us.
        self.renewed = Some(sent);
        self.due = sent.saturating_add(self.terms.retry_period);
    }

    /// A request failed. Somebody may have been faster, or it was carried out all the same: only reading tells.
    pub fn failed(&mut self, was: &Request, is_conflict: bool, now: Duration) {
        let at_once = is_conflict && *was != Request::Read && self.renewed.is_some();
        self.must_read = true;
        self.due = if at_once { now } else { now.saturating_add(self.terms.retry_period) };
    }

    /// The lease without a holder, to be written by a leader that goes: others need not wait.
    pub fn release(&self, wall: Timestamp) -> Option<Value> {
        self.renewed?;
        let lease = self.lease.clone()?;
        let stamp = stamp(wall);
        // An empty holder is refused by some servers; all of them need some duration.
        let spec = json!({
            "leaseDurationSeconds": 1,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": field(&lease, "leaseTransitions").as_i64().unwrap_or_default(),
        });
        Some(with_spec(lease, spec))
    }

    /// When the lease can be taken; `None`: at once.
    ///
    /// A lease that was deleted says nothing about its holder, who may still act: its time must pass, too.
    fn free_at(&self) -> Option<Duration> {
        let (sign, seen) = self.sign.as_ref()?;
        let is_held = !sign.holder.is_empty() && sign.holder != self.terms.identity;
        is_held.then(|| seen.saturating_add(sign.lasts))
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

impl Sign {
    fn of(lease: &Value, terms: &Terms) -> Self {
        let spec = &lease["spec"];
        let said = spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        Sign {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            lasts: said.unwrap_or(terms.duration),
            content: spec.clone(),
        }
    }
}

/// A field of the spec, or null.
fn field<'a>(lease: &'a Value, name: &str) -> &'a Value {
    lease.get("spec").and_then(|it| it.get(name)).unwrap_or(&Value::Null)
}

fn with_spec(mut lease: Value, spec: Value) -> Value {
    if let Some(lease) = lease.as_object_mut() {
        lease.insert("spec".into(), spec);
    }
    lease
}

/// The format of `MicroTime`.
fn stamp(wall: Timestamp) -> String {
    wall.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
