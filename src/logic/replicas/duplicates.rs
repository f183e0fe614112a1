//! Detects a second operator with the same resources, namespaces and finalizer: both would call their handlers for the same objects.
//!
//! The first one holds a Lease and renews it. A process reports when another one renews it for longer than a rolling update takes. A lease
//! that is not renewed is taken over: its holder has crashed.

use std::{fmt::Write as _, time::Duration};

use crate::sorted;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The pause between two reads of the lease.
pub const PERIOD: Duration = Duration::from_secs(20);
/// A lease that was not renewed for this long is free.
const EXPIRY: Duration = Duration::from_mins(1);
/// Another operator that keeps running for this long after it was first seen is not one that is being replaced.
const GRACE: Duration = Duration::from_secs(90);
/// The pause between two reports.
const REMINDER: Duration = Duration::from_hours(1);
/// The number of bytes of a hash in the name.
const HASH_BYTES: usize = 8;

/// The state of the lease as this process has observed it.
#[derive(Debug)]
pub struct Observer {
    identity: String,
    /// The name of the lease.
    name: String,
    other: Option<Other>,
    told: Option<Duration>,
}

/// Another process that holds the lease.
#[derive(Debug)]
struct Other {
    holder: String,
    renewed: String,
    /// When it was first seen.
    first: Duration,
    /// When it was last seen to have renewed the lease; `None` if it was only found so.
    alive: Option<Duration>,
    /// When its present renewal was first seen.
    since: Duration,
}

/// The actions after a read of the lease.
#[derive(Debug, Default, PartialEq)]
pub struct Look {
    /// The lease to write: to create if it has no `resourceVersion`, to replace otherwise.
    pub write: Option<Value>,
    /// The news to report.
    pub news: Option<News>,
}

/// News to report about another operator.
#[derive(Debug, PartialEq)]
pub enum News {
    /// Another operator has been running next to this one for this long.
    Second(String, Duration),
    /// The other operator has ended; contains its identity.
    Ended(String),
}

/// Returns the name of the lease of all operators with this finalizer, these namespaces and these resources.
pub fn name(finalizer: &str, namespaces: &str, resources: &[String]) -> String {
    let mut resources = resources.to_vec();
    sorted::sort(&mut resources);
    resources.dedup();
    let text = json!([finalizer, namespaces, resources]).to_string();
    let mut name = "kopf-operator-".to_owned();
    for byte in Sha256::digest(text).iter().take(HASH_BYTES) {
        let _always_fits = write!(name, "{byte:02x}");
    }
    name
}

impl Observer {
    /// Creates an observer for this process.
    pub fn new(identity: String, name: String) -> Self {
        Observer { identity, name, other: None, told: None }
    }

    /// Decides the actions after the lease was read. While this operator pauses, nothing is reported.
    pub fn look(
        &mut self,
        lease: Option<&Value>,
        now: (Duration, Timestamp),
        pauses: bool,
    ) -> Look {
        let (uptime, wall) = now;
        let text = |key: &str| lease.and_then(|it| it.pointer(key)?.as_str()).unwrap_or_default();
        let (holder, renewed) = (text("/spec/holderIdentity"), text("/spec/renewTime"));
        let is_free = holder.is_empty() || holder == self.identity;
        let is_expired = !is_free && self.is_expired((holder, renewed), uptime);
        if is_free || is_expired {
            let told = self.told.take();
            let before = self.other.take().map(|it| it.holder);
            let news = told.and(before).map(News::Ended);
            return Look { write: Some(self.lease(lease, wall)), news };
        }
        Look { write: None, news: self.news(uptime).filter(|_| !pauses) }
    }

    /// Records a renewal by another process; returns whether it no longer renews its lease.
    fn is_expired(&mut self, (holder, renewed): (&str, &str), now: Duration) -> bool {
        let is_same = self.other.as_ref().is_some_and(|it| it.holder == holder);
        if !is_same {
            // A restarted pod has another identity: it must be seen running for long enough again.
            let (holder, renewed) = (holder.to_owned(), renewed.to_owned());
            self.other = Some(Other { holder, renewed, first: now, alive: None, since: now });
        }
        let Some(other) = &mut self.other else { return false };
        if other.renewed != renewed {
            renewed.clone_into(&mut other.renewed);
            (other.alive, other.since) = (Some(now), now);
        }
        now.saturating_sub(other.since) >= EXPIRY
    }

    fn news(&mut self, now: Duration) -> Option<News> {
        let other = self.other.as_ref()?;
        let together = other.alive?.saturating_sub(other.first);
        let is_told = self.told.is_some_and(|it| now.saturating_sub(it) < REMINDER);
        if together < GRACE || is_told {
            return None;
        }
        self.told = Some(now);
        Some(News::Second(other.holder.clone(), together))
    }

    /// Returns the lease with this process as its holder.
    fn lease(&self, found: Option<&Value>, now: Timestamp) -> Value {
        let now = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let text = |key: &str| found.and_then(|it| it.pointer(key)?.as_str());
        let is_own = text("/spec/holderIdentity") == Some(&self.identity);
        let acquired = text("/spec/acquireTime").filter(|_| is_own).unwrap_or(&now);
        let metadata = found.and_then(|it| it.get("metadata")).cloned();
        made(
            &metadata.unwrap_or_else(|| json!({ "name": self.name })),
            &self.identity,
            (acquired, &now),
        )
    }

    /// Returns the lease without a holder, if this process holds it.
    pub fn release(&self, lease: &Value) -> Option<Value> {
        let text = |key: &str| lease.pointer(key).and_then(Value::as_str);
        let is_own = text("/spec/holderIdentity") == Some(&self.identity);
        let renewed = text("/spec/renewTime")?;
        let metadata = lease.get("metadata").filter(|_| is_own)?;
        Some(made(metadata, "", (renewed, renewed)))
    }
}

fn made(metadata: &Value, holder: &str, (acquired, renewed): (&str, &str)) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": EXPIRY.as_secs(),
            "acquireTime": acquired,
            "renewTime": renewed,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Duration, Look, News, Observer, Timestamp, Value, json, name};

    fn seconds(number: u64) -> (Duration, Timestamp) {
        let at = Timestamp::from_second(i64::try_from(number).expect("small")).expect("valid");
        (Duration::from_secs(number), at)
    }

    fn held(holder: &str, renewed: u64) -> Value {
        json!({ "metadata": { "resourceVersion": "7" },
            "spec": { "holderIdentity": holder, "renewTime": seconds(renewed).1.to_string() } })
    }

    /// Reads, every 20 s, a lease that another process renews until a moment. Returns the reports, and when the lease is taken.
    fn beside(holder: &str, until: u64, end: u64) -> (Vec<(u64, News)>, Option<u64>) {
        let mut observer = Observer::new("me".into(), "lease".into());
        let (mut news, mut taken) = (Vec::new(), None);
        for now in (0..end).step_by(20) {
            let look = observer.look(Some(&held(holder, now.min(until))), seconds(now), false);
            news.extend(look.news.map(|it| (now, it)));
            if look.write.is_some() {
                taken = Some(now);
                break;
            }
        }
        (news, taken)
    }

    #[test]
    fn a_second_operator_is_reported_after_a_while_and_then_once_an_hour() {
        let (news, taken) = beside("other", u64::MAX >> 1, 7_400);
        let second = |time: u64| (time, News::Second("other".into(), Duration::from_secs(time)));
        assert_eq!(news, [second(100), second(3_700), second(7_300)]);
        assert_eq!(taken, None);
    }

    #[test]
    fn a_crashed_one_and_one_that_is_being_replaced_are_not_reported() {
        assert_eq!(beside("crashed", 0, 500), (Vec::new(), Some(60)));
        assert_eq!(beside("replaced", 80, 500), (Vec::new(), Some(140)));
        assert_eq!(beside("", 0, 500), (Vec::new(), Some(0)));
    }

    #[test]
    fn the_end_of_a_reported_one_is_reported() {
        let (news, taken) = beside("other", 200, 500);
        let expected = [
            (100, News::Second("other".into(), Duration::from_secs(100))),
            (260, News::Ended("other".into())),
        ];
        assert_eq!((news.as_slice(), taken), (expected.as_slice(), Some(260)));
    }

    #[test]
    fn pods_that_restart_one_after_another_are_not_reported() {
        let mut observer = Observer::new("me".into(), "lease".into());
        for now in (0..1_000).step_by(20) {
            let holder = format!("pod-{}", now / 80);
            let look = observer.look(Some(&held(&holder, now)), seconds(now), false);
            assert_eq!(look, Look::default(), "{now}");
        }
    }

    #[test]
    fn an_operator_that_pauses_reports_nothing() {
        let mut observer = Observer::new("me".into(), "lease".into());
        for now in (0..1_000).step_by(20) {
            let look = observer.look(Some(&held("other", now)), seconds(now), true);
            assert_eq!(look, Look::default(), "{now}");
        }
    }

    #[test]
    fn the_lease_is_created_renewed_and_released() {
        let mut observer = Observer::new("me".into(), "lease".into());
        let created = observer.look(None, seconds(1), false).write.expect("a lease");
        assert_eq!(created["spec"]["holderIdentity"], "me");
        let renewed = observer.look(Some(&created), seconds(21), false).write.expect("a lease");
        assert_eq!(renewed["spec"]["acquireTime"], created["spec"]["acquireTime"]);
        assert_ne!(renewed["spec"]["renewTime"], created["spec"]["renewTime"]);
        assert_eq!(observer.release(&renewed).expect("held")["spec"]["holderIdentity"], "");
        assert_eq!(observer.release(&held("other", 1)), None);
    }

    #[test]
    fn the_name_depends_on_finalizer_namespaces_and_resources() {
        let of = |finalizer, namespaces, resources: &[&str]| {
            name(
                finalizer,
                namespaces,
                &resources.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
            )
        };
        let first = of("f", "all", &["a", "b"]);
        assert_eq!(
            first,
            of("f", "all", &["b", "a", "b"]),
            "the order of handlers is no difference"
        );
        assert_eq!(first.len(), "kopf-operator-".len() + 16);
        for other in
            [of("g", "all", &["a", "b"]), of("f", "ns", &["a", "b"]), of("f", "all", &["a"])]
        {
            assert_ne!(first, other);
        }
    }
}
