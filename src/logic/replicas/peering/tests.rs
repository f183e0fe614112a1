//! Records, verdicts, identities: the results of Kopf 1.45.2 for the same input.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    KnownPeers, OwnState, Peer, PeeringIdentity, PeeringRecord, PeeringVerdict, ProcessStart,
    Surroundings, aliases, announcement, blocker, judge, period, removal, user,
};

const NOW: &str = "2026-11-21T03:48:25.193123+00:00";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Returns a status with these records: identity, priority, seconds since the last renewal.
fn body(records: &[(&str, i64, i64)]) -> Value {
    let entries = records.iter().map(|(identity, priority, age)| {
        let lastseen = now() - jiff::SignedDuration::from_secs(*age);
        let entry = json!({ "priority": priority, "lifetime": 60, "lastseen": lastseen });
        ((*identity).to_owned(), entry)
    });
    json!({ "status": entries.collect::<serde_json::Map<_, _>>() })
}

fn verdict(records: &[(&str, i64, i64)], is_paused: bool) -> PeeringVerdict {
    let own = OwnState { identity: "me", priority: 10, shares: false, is_paused };
    judge(&known(&body(records)), own, Duration::ZERO)
}

/// Returns the records of an object that is seen for the first time.
fn known(body: &Value) -> KnownPeers {
    let mut known = KnownPeers::default();
    known.update(body, now(), Duration::ZERO);
    known
}

fn live(known: &KnownPeers, now: Duration) -> Vec<&str> {
    known.live(now).map(|(it, _)| it.identity.as_str()).collect()
}

fn texts(verdict: &PeeringVerdict) -> Vec<&str> {
    verdict.lines.iter().map(|it| &*it.text).collect()
}

#[test]
fn a_record_is_written_as_kopf_writes_it() {
    let record = PeeringRecord { priority: 0, lifetime: Duration::from_mins(1), message: None };
    let expected =
        json!({ "status": { "me": { "priority": 0, "lifetime": 60, "lastseen": NOW } } });
    assert_eq!(announcement("me", &record, now()), expected);
    assert_eq!(
        announcement("me", &record, now()).to_string(),
        expected.to_string(),
        "in this order"
    );
    assert_eq!(removal(["a", "b"]), json!({ "status": { "a": null, "b": null } }));
}

#[test]
fn a_lifetime_is_written_in_whole_seconds_and_never_as_none() {
    let lifetime = |it| {
        let record = PeeringRecord { priority: 0, lifetime: it, message: None };
        announcement("me", &record, now())["status"]["me"]["lifetime"].as_u64()
    };
    assert_eq!(lifetime(Duration::from_millis(1500)), Some(2));
    assert_eq!(lifetime(Duration::ZERO), Some(1));
}

#[test]
fn missing_fields_of_a_record_have_defaults() {
    let peers = Peer::all_of(&json!({ "status": { "a": {} } }), now());
    assert_eq!(
        peers[0].to_string(),
        format!("<Peer a: priority=0, lifetime=60, lastseen='{NOW}'>")
    );
    assert_eq!(peers[0].time_left(now()), Duration::from_mins(1));
}

#[test]
fn odd_records_are_data() {
    let status = json!({
        "conditions": [{ "type": "Ready" }],
        "none": null,
        "words": { "priority": "7", "lifetime": "5", "lastseen": "2026-11-21T03:48:24" },
        "floats": { "priority": 7.9, "lifetime": 1e300, "lastseen": "no time at all" },
        "lists": { "priority": [1], "lifetime": {}, "lastseen": 3, "future": true },
        "past": { "lifetime": -5 },
    });
    let peers = Peer::all_of(&json!({ "status": status }), now());
    let names: Vec<_> = peers.iter().map(|it| it.identity.as_str()).collect();
    assert_eq!(names, ["words", "floats", "lists", "past"]);
    assert_eq!((peers[0].priority, peers[0].lifetime), (7, 5));
    assert!(!peers[0].time_left(now()).is_zero(), "a stamp without a zone is of UTC");
    assert_eq!((peers[1].priority, peers[1].lifetime), (7, 60));
    assert_eq!((peers[2].priority, peers[2].lifetime), (0, 60));
    assert!(peers[3].time_left(now()).is_zero());
    for odd in [json!(null), json!({}), json!({ "status": [] }), json!({ "status": null })] {
        assert_eq!(Peer::all_of(&odd, now()), []);
    }
}

#[test]
fn a_record_counts_at_first_sight_until_its_stamp_or_its_lifetime_ends() {
    let known = known(&body(&[("dead", 0, 60), ("late", 0, 59), ("fast", 0, -600)]));
    let at = |seconds| live(&known, Duration::from_secs(seconds));
    assert_eq!(at(0), ["late", "fast"]);
    assert_eq!(at(1), ["fast"]);
    assert_eq!((at(59), at(60)), (vec!["fast"], vec![]));
}

#[test]
fn a_record_that_changes_counts_for_its_lifetime_whatever_its_stamp_says() {
    let seconds = Duration::from_secs;
    let mut known = known(&body(&[("slow", 0, 600)]));
    assert_eq!(live(&known, seconds(0)), [""; 0]);
    known.update(&body(&[("slow", 0, 590)]), now(), seconds(10));
    assert_eq!(live(&known, seconds(69)), ["slow"]);
    known.update(&body(&[("slow", 0, 590)]), now(), seconds(50));
    assert_eq!(live(&known, seconds(70)), [""; 0], "the same record is no sign of life");
    assert_eq!(known.abandoned(seconds(69)).count(), 0);
    assert_eq!(known.abandoned(seconds(70)).count(), 1);
}

#[test]
fn a_record_that_was_removed_and_is_written_again_has_changed() {
    let seconds = Duration::from_secs;
    let mut known = known(&body(&[("slow", 0, 600)]));
    known.update(&body(&[]), now(), seconds(10));
    assert_eq!(known.all().count(), 0);
    known.update(&body(&[("slow", 0, 595)]), now(), seconds(20));
    assert_eq!(live(&known, seconds(20)), ["slow"]);
}

#[test]
fn a_stronger_peer_pauses_us_once() {
    let first = verdict(&[("me", 10, 0), ("boss", 11, 20)], false);
    assert!(first.pause);
    assert_eq!(
        texts(&first),
        ["Pausing operations in favour of [<Peer boss: priority=11, lifetime=60, \
          lastseen='2026-11-21T03:48:05.193123+00:00'>]."]
    );
    assert_eq!(first.look_again, Some(Duration::from_secs(40)));
    let second = verdict(&[("me", 10, 0), ("boss", 11, 20)], true);
    assert!(second.pause);
    assert_eq!(texts(&second), [""; 0]);
}

#[test]
fn equal_peers_pause_all_and_warn_each_time() {
    let records = [("me", 10, 0), ("twin", 10, 20), ("late", 0, 90)];
    let first = verdict(&records, false);
    assert!(first.pause);
    let lines = texts(&first);
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0]
            .starts_with("Possibly conflicting operators with the same priority: [<Peer twin: ")
    );
    assert!(
        lines[1].starts_with("Pausing all operators, including self: [<Peer me: "),
        "{lines:?}"
    );
    assert!(lines[1].contains("<Peer late: "), "all records are shown");
    assert_eq!(texts(&verdict(&records, true)).len(), 1);
}

#[test]
fn equal_peers_that_share_the_objects_do_not_pause() {
    let own = OwnState { identity: "me", priority: 10, shares: true, is_paused: false };
    let shared = judge(&known(&body(&[("twin", 10, 0)])), own, Duration::ZERO);
    assert!(!shared.pause);
    assert_eq!(texts(&shared), [""; 0]);
    assert!(judge(&known(&body(&[("boss", 11, 0)])), own, Duration::ZERO).pause);
}

#[test]
fn weaker_and_dead_peers_are_no_reason_to_pause() {
    let found = verdict(&[("me", 10, 0), ("weak", 9, 0), ("dead", 99, 60)], false);
    assert!(!found.pause);
    assert_eq!(found.dead, [""; 0], "its clock may be slow: it is removed when nobody renews it");
    assert_eq!(found.look_again, None);
    assert!(found.is_announced);
    assert_eq!(texts(&found), [""; 0]);
}

#[test]
fn the_end_of_a_pause_is_logged() {
    let found = verdict(&[], true);
    assert!(!found.pause && !found.is_announced);
    assert_eq!(
        texts(&found),
        [
            "Resuming operations after the pause. Conflicting operators with the same priority are gone."
        ]
    );
}

#[test]
fn the_message_of_a_freeze_is_shown() {
    let record = PeeringRecord {
        priority: 100,
        lifetime: Duration::from_mins(1),
        message: Some("we're moving".into()),
    };
    let peers = Peer::all_of(&announcement("ops@home", &record, now()), now());
    assert!(peers[0].to_string().ends_with(", message=\"we're moving\">"), "{}", peers[0]);
}

#[test]
fn records_are_renewed_some_seconds_before_they_expire() {
    let seconds = |lifetime, margin| period(Duration::from_secs(lifetime), margin).as_secs();
    assert_eq!((seconds(60, 5), seconds(60, 10)), (55, 50));
    assert_eq!((seconds(7, 10), seconds(1, 5), seconds(0, 5)), (1, 1, 1));
}

fn surroundings(host: &str, aliases: &[&str]) -> Surroundings {
    let aliases = aliases.iter().map(|it| (*it).to_owned()).collect();
    Surroundings { pod: None, user: "ops".into(), host: host.into(), aliases }
}

#[test]
fn the_most_specific_host_name_is_used() {
    let name = |host: &str, names: &[&str]| PeeringIdentity::of_person(&surroundings(host, names));
    assert_eq!(name("box", &[]), "ops@box");
    assert_eq!(
        name("box", &["localhost", "box", "box.example.com", "10.1.2.3"]),
        "ops@box.example.com"
    );
    assert_eq!(name("box", &["1.0.0.ip6.arpa", "localhost", "other"]), "ops@other");
    assert_eq!(name("box.local.localdomain", &[]), "ops@box");
    assert_eq!(name("box", &["10.1.2.3", "fe80::1", "localhost"]), "ops@box");
}

#[test]
fn an_operator_is_distinguished_from_all_others_also_in_the_same_pod() {
    let moment = ProcessStart { start: now(), random: [0, 6, 255] };
    let own = PeeringIdentity::of_operator(&surroundings("box", &[]), moment);
    assert_eq!(own.peer, "ops@box/20261121034825/ahl");
    assert_eq!(own.process, own.peer);
    let pod = Surroundings { pod: Some("pod-1".into()), ..surroundings("box", &[]) };
    let own = PeeringIdentity::of_operator(&pod, moment);
    assert_eq!((own.peer.as_str(), own.process.as_str()), ("pod-1", "pod-1/20261121034825/ahl"));
    assert_eq!(PeeringIdentity::of_person(&pod), "pod-1");
}

#[test]
fn names_are_looked_up_in_the_files_of_the_system() {
    let hosts =
        "127.0.0.1\tlocalhost\n# 10.0.0.9 box\n10.0.0.7 box.svc.local box # us\n10.0.0.7 again\n";
    assert_eq!(aliases(hosts, "box"), ["box.svc.local", "box"]);
    assert_eq!(aliases(hosts, "unknown"), [""; 0]);
    let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nkopf:x:1000:1000::/:\n";
    assert_eq!(user(passwd, 1000).as_deref(), Some("kopf"));
    assert_eq!(user(passwd, 7), None);
}

#[test]
fn pauses_of_both_groups_are_distinguished() {
    assert_eq!(blocker("default", "kopf.dev", None), "default@None");
    assert_eq!(blocker("default", "kopf.dev", Some("ns1")), "default@ns1");
    assert_eq!(blocker("default", "zalando.org", None), "default@None of zalando.org");
}
