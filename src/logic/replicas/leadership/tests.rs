//! All races of an election, step by step, on two independent clocks.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Elector, LeaseRequest, ReplicaRole, Terms};

fn terms(identity: &str) -> Terms {
    Terms {
        identity: identity.into(),
        name: "op".into(),
        namespace: "ns".into(),
        duration: secs(15),
        renew_deadline: secs(10),
        retry_period: secs(2),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a wall-clock time, which is only for humans.
fn wall(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// Returns a lease in the form of the server.
fn lease(holder: &str, renewed: i64) -> Value {
    json!({
        "metadata": { "name": "op", "namespace": "ns", "resourceVersion": renewed.to_string(), "labels": { "kept": "yes" } },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": wall(renewed).to_string(),
        },
    })
}

/// Returns an elector that leads since `at`.
fn leader(at: Duration) -> Elector {
    let mut elector = Elector::new(terms("a"));
    elector.read(None, at);
    let LeaseRequest::Create(lease) = elector.request(wall(0)) else {
        panic!("a lease is created")
    };
    elector.wrote(lease, at);
    assert_eq!(elector.role(at), ReplicaRole::Leader);
    elector
}

fn is_replace(elector: &Elector) -> bool {
    matches!(elector.request(wall(0)), LeaseRequest::Replace(_))
}

#[test]
fn a_lease_that_is_not_there_is_created_at_once() {
    let mut elector = Elector::new(terms("a"));
    assert_eq!(elector.request(wall(0)), LeaseRequest::Read);
    elector.read(None, secs(1));
    assert_eq!(elector.due(), secs(1));
    let LeaseRequest::Create(lease) = elector.request(wall(0)) else {
        panic!("a lease is created")
    };
    assert_eq!(lease["metadata"], json!({ "name": "op", "namespace": "ns" }));
    assert_eq!(
        lease["spec"],
        json!({
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "1970-01-12T13:46:40.000000Z", "renewTime": "1970-01-12T13:46:40.000000Z",
        })
    );
    assert_eq!(elector.role(secs(1)), ReplicaRole::Standby, "not before the server has said yes");
}

#[test]
fn a_lease_without_a_holder_is_acquired_at_once_and_keeps_other_fields() {
    let mut elector = Elector::new(terms("a"));
    elector.read(Some(lease("", 7)), secs(1));
    let LeaseRequest::Replace(taken) = elector.request(wall(9)) else { panic!("it is replaced") };
    assert_eq!(taken["metadata"], lease("", 7)["metadata"], "with its version, and with labels");
    assert_eq!(taken["spec"]["leaseTransitions"], 4);
    assert_eq!(taken["spec"]["acquireTime"], taken["spec"]["renewTime"]);
}

#[test]
fn a_holder_is_alive_until_its_lease_has_not_changed_for_its_duration_on_our_clock() {
    let mut elector = Elector::new(terms("a"));
    // The stamps of the holder are a year in the past or in the future: they are ignored.
    elector.read(Some(lease("b", -31_000_000)), secs(100));
    assert_eq!((elector.request(wall(0)), elector.due()), (LeaseRequest::Read, secs(102)));
    assert_eq!(elector.holder(), Some("b"));
    elector.read(Some(lease("b", -31_000_000)), secs(114));
    assert_eq!((elector.request(wall(0)), elector.due()), (LeaseRequest::Read, secs(115)));
    elector.read(Some(lease("b", 31_000_000)), secs(115));
    assert_eq!(elector.request(wall(0)), LeaseRequest::Read, "a change is a sign of life");
    elector.read(Some(lease("b", 31_000_000)), secs(130));
    assert!(is_replace(&elector));
    assert_eq!(elector.due(), secs(130));
}

#[test]
fn a_change_of_labels_is_no_renewal() {
    let mut elector = Elector::new(terms("a"));
    elector.read(Some(lease("b", 1)), secs(0));
    let mut labelled = lease("b", 1);
    labelled["metadata"]["resourceVersion"] = "99".into();
    elector.read(Some(labelled), secs(15));
    assert!(is_replace(&elector));
}

#[test]
fn the_duration_in_the_lease_counts_not_ours() {
    let mut elector = Elector::new(terms("a"));
    let mut long = lease("b", 1);
    long["spec"]["leaseDurationSeconds"] = 60.into();
    elector.read(Some(long.clone()), secs(0));
    elector.read(Some(long.clone()), secs(59));
    assert_eq!(elector.request(wall(0)), LeaseRequest::Read);
    elector.read(Some(long), secs(60));
    assert!(is_replace(&elector));
}

#[test]
fn of_two_that_take_a_free_lease_one_meets_a_conflict_and_stands_by() {
    let mut elector = Elector::new(terms("a"));
    elector.read(None, secs(0));
    let request = elector.request(wall(0));
    elector.failed(&request, true, secs(1));
    assert_eq!((elector.request(wall(0)), elector.due()), (LeaseRequest::Read, secs(3)));
    elector.read(Some(lease("b", 1)), secs(3));
    assert_eq!(elector.role(secs(3)), ReplicaRole::Standby);
    assert_eq!(elector.request(wall(0)), LeaseRequest::Read);
}

#[test]
fn a_deleted_lease_is_not_taken_while_its_holder_may_still_act() {
    let mut elector = Elector::new(terms("a"));
    elector.read(Some(lease("b", 1)), secs(0));
    elector.read(None, secs(2));
    assert_eq!(elector.request(wall(0)), LeaseRequest::Read);
    elector.read(None, secs(15));
    assert!(matches!(elector.request(wall(0)), LeaseRequest::Create(_)));
}

#[test]
fn a_lease_that_was_taken_without_our_knowledge_is_renewed_before_we_lead() {
    let mut elector = Elector::new(terms("a"));
    elector.read(None, secs(0));
    let request = elector.request(wall(0));
    // The request succeeded, but its response was lost.
    elector.failed(&request, false, secs(5));
    elector.read(Some(lease("a", 0)), secs(7));
    assert_eq!(
        elector.role(secs(7)),
        ReplicaRole::Standby,
        "for how long it is ours, nobody knows"
    );
    let LeaseRequest::Replace(renewed) = elector.request(wall(7)) else { panic!("it is renewed") };
    assert_eq!(renewed["spec"]["leaseTransitions"], 3);
    assert_eq!(renewed["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
    elector.wrote(renewed, secs(7));
    assert_eq!(elector.role(secs(7)), ReplicaRole::Leader);
}

#[test]
fn a_leader_renews_every_retry_period_and_counts_from_when_it_asked() {
    let mut elector = leader(secs(10));
    assert_eq!((elector.due(), elector.deadline()), (secs(12), Some(secs(20))));
    let LeaseRequest::Replace(lease) = elector.request(wall(2)) else { panic!("it is renewed") };
    elector.wrote(lease, secs(12));
    assert_eq!((elector.due(), elector.deadline()), (secs(14), Some(secs(22))));
}

#[test]
fn a_leader_that_cannot_renew_ends_before_others_may_take_over() {
    let mut elector = leader(secs(0));
    for now in [2, 4, 6, 8] {
        let request = elector.request(wall(0));
        elector.failed(&request, false, secs(now));
        assert_eq!(elector.role(secs(now)), ReplicaRole::Leader);
    }
    assert_eq!(elector.role(Duration::from_millis(9_999)), ReplicaRole::Leader);
    let ReplicaRole::Lost(reason) = elector.role(secs(10)) else { panic!("it is lost") };
    assert_eq!(reason, "it could not be renewed for 10s");
    let mut other = Elector::new(terms("b"));
    // The other replica saw the last renewal when it was sent, at the earliest.
    other.read(
        Some(json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } })),
        secs(0),
    );
    other.read(
        Some(json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } })),
        secs(10),
    );
    assert_eq!(other.request(wall(0)), LeaseRequest::Read);
}

#[test]
fn a_leader_continues_after_an_edit_of_its_lease() {
    let mut elector = leader(secs(0));
    let request = elector.request(wall(0));
    elector.failed(&request, true, secs(2));
    assert_eq!((elector.request(wall(0)), elector.due()), (LeaseRequest::Read, secs(2)), "at once");
    elector.read(Some(lease("a", 5)), secs(2));
    assert_eq!(elector.due(), secs(2));
    assert!(is_replace(&elector));
    assert_eq!(elector.role(secs(2)), ReplicaRole::Leader);
}

#[test]
fn a_leader_creates_a_lease_that_was_deleted() {
    let mut elector = leader(secs(0));
    let request = elector.request(wall(0));
    elector.failed(&request, true, secs(2));
    elector.read(None, secs(2));
    assert!(matches!(elector.request(wall(0)), LeaseRequest::Create(_)));
    assert_eq!(elector.role(secs(2)), ReplicaRole::Leader);
}

#[test]
fn a_leader_that_sees_another_holder_has_lost_permanently() {
    for (holder, reason) in [("b", "it is held by b now"), ("", "it is held by nobody now")] {
        let mut elector = leader(secs(0));
        let request = elector.request(wall(0));
        elector.failed(&request, true, secs(2));
        elector.read(Some(lease(holder, 5)), secs(2));
        assert_eq!(elector.role(secs(2)), ReplicaRole::Lost(reason.into()));
        elector.read(Some(lease("a", 6)), secs(3));
        assert_eq!(elector.role(secs(3)), ReplicaRole::Lost(reason.into()));
    }
}

#[test]
fn a_released_lease_has_no_holder_and_can_be_acquired_at_once() {
    let elector = leader(secs(0));
    let released = elector.release(wall(5)).expect("it is ours");
    assert_eq!(released["spec"].get("holderIdentity"), None);
    assert_eq!(released["spec"]["leaseDurationSeconds"], 1);
    let mut other = Elector::new(terms("b"));
    other.read(Some(released), secs(50));
    assert_eq!(other.due(), secs(50));
    assert!(is_replace(&other));
    assert_eq!(Elector::new(terms("c")).release(wall(0)), None, "a standby has nothing to give");
}

#[test]
fn invalid_election_settings_are_reported() {
    assert_eq!(terms("a").problem(), None);
    let late = Terms { renew_deadline: secs(15), ..terms("a") };
    let problem = late.problem().expect("a problem");
    assert!(problem.starts_with("settings.leadership.renew_deadline (15s) must be shorter than settings.leadership.duration (15s)"), "{problem}");
    assert!(Terms { retry_period: secs(10), ..terms("a") }.problem().is_some());
    assert!(Terms { retry_period: secs(0), ..terms("a") }.problem().is_some());
}
