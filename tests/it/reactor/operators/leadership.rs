//! Replicas that elect a leader: one acts, and when it is gone, another one takes over soon and alone.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::OperatorFailure,
    telemetry::HealthState,
    testing::{Fate, pass},
};
use serde_json::{Value, json};
use tokio::time;

use super::cluster::{Cluster, EXAMPLES, Plan, cluster_peering, peering_object};

const LEASES: &str = "leases.coordination.k8s.io";

/// Returns the lease of all tests, in the namespace of the client.
fn lease(env: &Cluster) -> Value {
    env.server.get(LEASES, "ops", "kopf").unwrap_or_default()
}

fn holder(env: &Cluster) -> Option<String> {
    lease(env)["spec"]["holderIdentity"].as_str().map(str::to_owned)
}

/// Returns how often objects were listed.
fn lists(env: &Cluster) -> usize {
    let requests = env.requests("GET", "/kopfexamples");
    requests.iter().filter(|it| !it.query.contains("watch=")).count()
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_leads_and_when_it_dies_the_other_takes_over_within_the_lease() {
    let env = Cluster::new([]);
    env.create("before");
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.until(10).await;
    env.create("one");
    env.until(20).await;
    assert_eq!(env.calls(), ["a create before", "a create one"]);
    assert_eq!(holder(&env).as_deref(), Some("a"));
    assert_eq!(
        env.said("INFO This replica is a standby: the lease 'kopf' in 'ops' is held by a."),
        1
    );
    drop(a); // kill -9
    env.create("two");
    env.until(33).await;
    assert_eq!(env.calls().len(), 2, "the dead may still be alive");
    env.until(38).await;
    assert_eq!(env.calls(), ["a create before", "a create one", "b create two"]);
    assert_eq!(holder(&env).as_deref(), Some("b"));
    assert_eq!(lease(&env)["spec"]["leaseTransitions"], 1);
    assert_eq!(
        lists(&env),
        4,
        "one list for each replica at its start, and one when it takes over"
    );
    b.stop().await;
    assert_eq!(holder(&env), None);
}

#[tokio::test(start_paused = true)]
async fn a_standby_whose_watch_lags_behind_does_nothing_again_when_it_takes_over() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.until(5).await;
    env.create("one");
    env.until(6).await;
    // It has seen the object, but not the changes of the leader.
    b.lag(Duration::from_mins(10));
    env.create("two");
    env.until(10).await;
    assert_eq!(env.calls(), ["a create one", "a create two"]);
    drop(a); // kill -9
    env.until(120).await;
    assert_eq!(env.calls(), ["a create one", "a create two"]);
    env.create("three");
    env.until(130).await;
    b.lag(Duration::ZERO);
    env.until(1000).await;
    assert_eq!(env.calls(), ["a create one", "a create two", "b create three"]);
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_told_to_stop_hands_over_in_seconds() {
    let env = Cluster::new([]);
    let mut slow = Plan::new("a").replica();
    slow.creation = Duration::from_secs(100);
    slow.settings.queueing.exit_timeout = Duration::from_secs(30);
    let a = env.start(slow);
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.create("one");
    env.until(10).await;
    a.stop().await;
    let stopped = env.start.elapsed();
    assert!((40..42).contains(&stopped.as_secs()), "while it ends, it leads: {stopped:?}");
    env.until(43).await;
    assert_eq!(env.calls(), ["a create one", "a create one cut", "b create one"]);
    let at = env.calls.timed()[2].0;
    assert!(at.saturating_sub(stopped) <= Duration::from_secs(2), "{at:?}");
    assert_eq!(env.said("INFO Released the lease 'kopf' in 'ops'."), 1);
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_one_begins() {
    let env = Cluster::new([]);
    let mut slow = Plan::new("a").replica();
    slow.creation = Duration::from_secs(100);
    let a = env.start(slow);
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.create("one");
    env.until(9).await;
    a.connect(false);
    let health = a.running.health.clone();
    let failure = a.end().await.expect_err("it cannot lead");
    let lost = env.start.elapsed().as_secs();
    assert!((16..=20).contains(&lost), "10 s after the last renewal: {lost}");
    assert!(matches!(failure, OperatorFailure::Leadership(_)));
    assert_eq!(failure.to_string(), "the leadership is lost: it could not be renewed for 10s");
    assert_eq!(health.parts()["leader-election"].state, HealthState::Dead);
    env.until(120).await;
    assert_eq!(env.calls(), ["a create one", "a create one cut", "b create one"]);
    let cut = env.calls.timed()[1].0.as_secs();
    assert_eq!(cut, lost);
    let at = env.calls.timed()[2].0.as_secs();
    assert!((21..=26).contains(&at), "15 s after the last renewal that was seen: {at}");
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_is_cut_off_never_leads() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.until(5).await;
    b.connect(false);
    env.until(60).await;
    assert_eq!(b.running.health.parts()["leader-election"].state, HealthState::Unready);
    env.create("one");
    env.until(61).await;
    b.connect(true);
    env.until(90).await;
    assert_eq!(env.calls(), ["a create one"]);
    assert_eq!(holder(&env).as_deref(), Some("a"));
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_are_led_by_one() {
    let env = Cluster::new([]);
    let names = ["a", "b", "c", "d"];
    let all = names.map(|it| env.start(Plan::new(it).replica()));
    env.until(10).await;
    for object in ["one", "two", "three"] {
        env.create(object);
    }
    env.until(20).await;
    let leader = holder(&env).expect("somebody leads");
    let calls = env.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|it| it.starts_with(&leader)), "{calls:?}");
    for one in all {
        one.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn edits_of_the_lease_and_its_deletion_unseat_nobody() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    for second in 2..30 {
        env.until(second).await;
        let labels = json!({ "metadata": { "labels": { "seen": second.to_string() } } });
        env.server.merge(LEASES, "ops", "kopf", labels).expect("it is there");
    }
    assert_eq!(holder(&env).as_deref(), Some("a"));
    assert_eq!(lease(&env)["metadata"]["labels"]["seen"], "29");
    for second in 30..60 {
        env.until(second).await;
        drop(env.server.remove(LEASES, "ops", "kopf"));
    }
    env.until(62).await;
    assert_eq!(holder(&env).as_deref(), Some("a"));
    env.create("one");
    env.until(63).await;
    assert_eq!(env.calls(), ["a create one"]);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_by_hand_stops_at_once() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(5).await;
    let by_hand = json!({ "spec": { "holderIdentity": "a person" } });
    env.server.merge(LEASES, "ops", "kopf", by_hand).expect("it is there");
    let failure = a.end().await.expect_err("it cannot lead");
    assert!(env.start.elapsed() < Duration::from_secs(8));
    assert_eq!(failure.to_string(), "the leadership is lost: it is held by a person now");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_a_start_for_handlers() {
    let kinds = [Kind::Create, Kind::Resume, Kind::Event, Kind::Delete];
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica().with(&kinds));
    env.until(1).await;
    let b = env.start(Plan::new("b").replica().with(&kinds));
    for name in ["stays", "goes"] {
        env.create(name);
    }
    env.until(5).await;
    env.server.delete(EXAMPLES, "ns1", "goes").expect("it is there");
    env.until(8).await;
    let before = env.calls().len();
    assert!(env.calls().iter().all(|it| it.starts_with("a ")), "{:?}", env.calls());
    a.stop().await;
    env.until(20).await;
    let mut after = env.calls().split_off(before);
    after.sort();
    // The event of its own patch comes, too, if there is one: resuming stores nothing here.
    assert_eq!(after, ["b event stays", "b resume stays"]);
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_forgets_what_is_gone_when_its_watch_was_down() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica().with(&[Kind::Event]));
    env.until(1).await;
    let b = env.start(Plan::new("b").replica().with(&[Kind::Create]));
    env.create("ghost");
    env.create("one");
    env.until(5).await;
    // The watches end, the deletion is not seen, and old versions are compacted: there is a new list.
    env.server.remove(EXAMPLES, "ns1", "ghost").expect("it is there");
    env.server.compact();
    env.server.close_watches();
    env.until(10).await;
    drop(a);
    env.until(40).await;
    assert_eq!(
        env.calls().iter().filter(|it| it.starts_with("b ")).collect::<Vec<_>>(),
        ["b create one"]
    );
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_the_lease_nobody_leads_and_it_is_told() {
    let env = Cluster::new([]);
    env.refuse(403, "", "/leases");
    let a = env.start(Plan::new("a").replica());
    env.create("one");
    env.until(60).await;
    assert_eq!(env.calls(), [""; 0]);
    assert_eq!(
        env.said("ERROR Cannot use the lease 'kopf' in 'ops', retrying: "),
        1,
        "{}",
        env.log()
    );
    assert_eq!(a.running.health.parts()["leader-election"].state, HealthState::Unready);
    env.server.clear_faults();
    env.until(65).await;
    assert_eq!(env.calls(), ["a create one"]);
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn terms_that_make_no_sense_end_the_operator() {
    let env = Cluster::new([]);
    let mut plan = Plan::new("a").replica();
    plan.settings.leadership.renew_deadline = Duration::from_secs(20);
    let failure = env.start(plan).end().await.expect_err("no election");
    assert!(failure.to_string().contains("settings.leadership.renew_deadline (20s)"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn replicas_are_one_operator_for_others_and_no_peers_of_each_other() {
    let env = Cluster::new([cluster_peering("kopf.dev")]);
    let peerings = "clusterkopfpeerings.kopf.dev";
    env.server.create(peerings, peering_object("default")).expect("it is new");
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.until(5).await;
    let records =
        || env.server.get(peerings, "", "default").expect("it is there")["status"].clone();
    let names: Vec<_> = records().as_object().expect("records").keys().cloned().collect();
    assert_eq!(names, ["leader@ops/kopf"]);
    drop(a);
    env.create("one");
    env.until(25).await;
    assert_eq!(env.calls(), ["b create one"], "the record of the dead leader holds up nobody");
    let freeze =
        json!({ "ops": { "priority": 100, "lifetime": 600, "lastseen": "2026-01-01T00:00:25Z" } });
    env.server.merge(peerings, "", "default", json!({ "status": freeze })).expect("it is there");
    env.until(26).await;
    env.create("two");
    env.until(50).await;
    assert_eq!(env.calls().len(), 1);
    b.stop().await;
    assert_eq!(records().get("leader@ops/kopf"), None);
}

#[tokio::test(start_paused = true)]
async fn a_standby_keeps_its_indexes_and_calls_no_other_handler() {
    let kinds = [Kind::Index, Kind::Create, Kind::Event, Kind::Daemon];
    let env = Cluster::new([]);
    env.create("before");
    let a = env.start(Plan::new("a").replica().with(&[Kind::Event]));
    env.until(1).await;
    let b = env.start(Plan::new("b").replica().with(&kinds));
    env.until(2).await;
    env.create("one");
    env.until(10).await;
    let of_b = || env.calls().into_iter().filter(|it| it.starts_with("b ")).collect::<Vec<_>>();
    assert_eq!(of_b(), ["b index before", "b index one"]);
    assert!(env.requests("PATCH", "kopfexamples").is_empty());
    a.stop().await;
    env.until(15).await;
    for object in ["before", "one"] {
        for handler in ["create", "event", "daemon"] {
            let call = format!("b {handler} {object}");
            assert!(of_b().contains(&call), "{call} is not in {:?}", of_b());
        }
    }
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn daemons_of_a_leader_that_is_cut_off_are_cancelled_before_others_begin() {
    let env = Cluster::new([]);
    env.create("one");
    let a = env.start(Plan::new("a").replica().with(&[Kind::Daemon]));
    env.until(1).await;
    let b = env.start(Plan::new("b").replica().with(&[Kind::Daemon]));
    env.until(9).await;
    a.connect(false);
    a.end().await.expect_err("it cannot lead");
    let lost = env.start.elapsed();
    env.until(60).await;
    assert_eq!(env.calls(), ["a daemon one", "a daemon one cut", "b daemon one"]);
    let times: Vec<_> = env.calls.timed().into_iter().map(|(at, _)| at).collect();
    assert_eq!(times[1], lost);
    assert!(times[2].saturating_sub(lost) >= Duration::from_secs(4), "{times:?}");
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_requests_of_other_kinds_are_slow() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    a.set("PATCH", "/kopfexamples/", Fate::Delay(Duration::from_secs(10)));
    for number in 0..300 {
        env.create(&format!("object-{number}"));
    }
    env.until(60).await;
    assert_eq!(holder(&env).as_deref(), Some("a"));
    assert_eq!(a.running.health.parts()["leader-election"].state, HealthState::Ready);
    a.stop().await;
}

/// After the freeze, all timers of the process are due at once, and the order in which its tasks are polled is random.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_frozen_calls_nothing_and_writes_nothing() {
    let env = Cluster::new([]);
    for number in 0..30 {
        env.create(&format!("object-{number:02}"));
    }
    let mut plan = Plan::new("a").replica().with(&[Kind::Timer, Kind::Daemon, Kind::Create]);
    plan.creation = Duration::from_secs(8);
    let a = env.start(plan);
    env.until(3).await;
    let before = env.calls.timed().len();
    let written = env.requests("PATCH", "/kopfexamples").len();
    a.connect(false);
    time::advance(Duration::from_secs(30)).await;
    a.connect(true);
    pass(1).await;
    let after = env.calls.timed().split_off(before);
    let acts: Vec<_> = after.iter().filter(|(_, call)| !call.ends_with(" cut")).collect();
    assert!(acts.is_empty(), "{acts:?}");
    assert_eq!(env.requests("PATCH", "/kopfexamples").len(), written);
    assert!(matches!(a.end().await, Err(OperatorFailure::Leadership(_))));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_after_the_cleanup_handlers() {
    let env = Cluster::new([]);
    let mut plan = Plan::new("a").replica().with(&[Kind::Create, Kind::Cleanup]);
    plan.creation = Duration::from_secs(5);
    let a = env.start(plan);
    env.until(1).await;
    let b = env.start(Plan::new("b").replica());
    env.until(10).await;
    a.running.cancel();
    env.until(13).await;
    env.create("one");
    assert_eq!(env.calls(), ["a cleanup -"]);
    assert_eq!(holder(&env).as_deref(), Some("a"), "it cleans up, so it leads");
    a.end().await.expect("a clean end");
    assert_eq!(holder(&env), None);
    env.until(18).await;
    assert_eq!(env.calls(), ["a cleanup -", "a cleanup - done", "b create one"]);
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cleanup_handlers_that_hang_do_not_keep_the_lease() {
    let env = Cluster::new([]);
    let mut plan = Plan::new("a").replica().with(&[Kind::Create, Kind::Cleanup]);
    plan.creation = Duration::from_hours(1);
    let a = env.start(plan);
    env.until(5).await;
    a.stop().await;
    let took = env.start.elapsed().as_secs() - 5;
    assert!((10..=12).contains(&took), "settings.process.cleanup_timeout: {took} s");
    assert_eq!(holder(&env), None);
    assert_eq!(env.said("ERROR Cleanup handlers took longer than 10 s"), 1, "{}", env.log());
}

#[tokio::test(start_paused = true)]
async fn cleanup_handlers_of_standbys_run_as_those_of_paused_operators_do() {
    let env = Cluster::new([]);
    let a = env.start(Plan::new("a").replica());
    env.until(1).await;
    let b = env.start(Plan::new("b").replica().with(&[Kind::Cleanup, Kind::Create]));
    env.until(5).await;
    b.stop().await;
    assert_eq!(env.calls(), ["b cleanup -", "b cleanup - done"][..1]);
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_during_the_cleanup_ends_it() {
    let env = Cluster::new([]);
    let mut plan = Plan::new("a").replica().with(&[Kind::Create, Kind::Cleanup]);
    plan.creation = Duration::from_secs(8);
    let a = env.start(plan);
    env.until(5).await;
    a.running.cancel();
    env.until(6).await;
    let by_hand = json!({ "spec": { "holderIdentity": "a person" } });
    env.server.merge(LEASES, "ops", "kopf", by_hand).expect("it is there");
    assert!(matches!(a.end().await, Err(OperatorFailure::Leadership(_))));
    assert!(env.start.elapsed() < Duration::from_secs(10), "{:?}", env.start.elapsed());
    assert_eq!(env.calls(), ["a cleanup -", "a cleanup - cut"]);
}
