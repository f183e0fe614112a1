//! Peers that pause for each other: the facts of Kopf 1.45.2, and improvements over it.

use std::time::Duration;

use kopf::{reactor::NamespaceScope, testing::definition};
use kopf_apiserver::{Fault, FaultEffect, ResourceDef};
use serde_json::{Value, json};

use super::cluster::{Cluster, NAMESPACE, Plan, cluster_peering, peering_object};

const PEERINGS: &str = "clusterkopfpeerings.kopf.dev";
const RESUMED: &str = "INFO Resuming operations after the pause. \
                       Conflicting operators with the same priority are gone.";

/// Returns a cluster with the default peering object.
fn cluster() -> Cluster {
    let env = Cluster::new([cluster_peering("kopf.dev")]);
    env.server.create(PEERINGS, peering_object("default")).expect("it is new");
    env
}

/// Returns the records of the peering object.
fn records(env: &Cluster) -> Value {
    let object = env.server.get(PEERINGS, "", "default").expect("it is there");
    object.get("status").cloned().unwrap_or_else(|| json!({}))
}

fn names(env: &Cluster) -> Vec<String> {
    records(env).as_object().expect("records").keys().cloned().collect()
}

/// Writes a record of an absent operator.
fn write(env: &Cluster, name: &str, record: &Value) {
    let status = json!({ "status": { name: record } });
    env.server.merge(PEERINGS, "", "default", status).expect("it is there");
}

fn record(priority: i64, lifetime: u64, lastseen: &str) -> Value {
    json!({ "priority": priority, "lifetime": lifetime, "lastseen": lastseen })
}

#[tokio::test(start_paused = true)]
async fn the_stronger_operator_works_and_the_weaker_pauses() {
    let env = cluster();
    let weak = env.start(Plan::new("weak"));
    env.until(1).await;
    env.create("one");
    env.until(5).await;
    let strong = env.start(Plan::new("strong").priority(10));
    env.until(10).await;
    env.create("two");
    env.until(20).await;
    strong.stop().await;
    env.until(21).await;
    env.create("three");
    env.until(25).await;
    assert_eq!(env.calls(), ["weak create one", "strong create two", "weak create three"]);
    assert_eq!(names(&env), ["weak"]);
    let pausing = "INFO Pausing operations in favour of [<Peer strong: priority=10, lifetime=60, lastseen='2026-01-01T00:00:05+00:00'>].";
    assert_eq!((env.said(pausing), env.said(RESUMED)), (1, 1), "{}", env.log());
    let streams = [
        "DEBUG Pausing the watch-stream for kopfexamples.v1.kopf.dev cluster-wide (blockers: default@None).",
        "DEBUG Resuming the watch-stream for kopfexamples.v1.kopf.dev cluster-wide.",
    ];
    assert!(streams.iter().all(|it| env.said(it) == 1), "{}", env.log());
    weak.stop().await;
    assert_eq!(names(&env), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn equal_operators_all_pause_until_one_is_left() {
    let env = cluster();
    let first = env.start(Plan::new("first"));
    env.until(5).await;
    let second = env.start(Plan::new("second"));
    env.until(6).await;
    env.create("one");
    env.until(50).await;
    assert_eq!(env.calls(), [""; 0]);
    assert!(
        env.said("WARN Possibly conflicting operators with the same priority: [<Peer first: ") > 0
    );
    assert!(
        env.said("WARN Possibly conflicting operators with the same priority: [<Peer second: ") > 0
    );
    assert_eq!(
        env.said("WARN Pausing all operators, including self: [<Peer first: "),
        2,
        "{}",
        env.log()
    );
    first.stop().await;
    env.until(51).await;
    assert_eq!(env.calls(), ["second create one"]);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_blocks_until_its_time_has_come_and_is_removed() {
    let env = cluster();
    let strong = env.start(Plan::new("strong").priority(1));
    env.until(1).await;
    let weak = env.start(Plan::new("weak"));
    env.until(2).await;
    drop(strong); // kill -9
    env.create("one");
    env.until(59).await;
    assert_eq!(env.calls(), [""; 0]);
    env.until(61).await;
    assert_eq!(env.calls(), ["weak create one"]);
    env.until(120).await;
    assert_eq!(names(&env), ["weak"]);
    let removals = env.requests("PATCH", "/clusterkopfpeerings/default");
    let removal = json!({ "status": { "strong": null } });
    assert_eq!(removals.iter().filter(|it| it.json() == removal).count(), 1);
    weak.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_is_written_renewed_in_time_and_removed_at_the_end() {
    let env = cluster();
    let operator = env.start(Plan::new("op"));
    env.until(200).await;
    operator.stop().await;
    let pings = env.requests("PATCH", "/apis/kopf.dev/v1/clusterkopfpeerings/default");
    let first = json!({ "status": { "op": {
        "priority": 0, "lifetime": 60, "lastseen": "2026-01-01T00:00:00.000000+00:00",
    } } });
    assert_eq!(pings[0].json(), first);
    assert_eq!(pings[0].content_type, "application/merge-patch+json");
    assert_eq!(pings.last().expect("a removal").json(), json!({ "status": { "op": null } }));
    let times: Vec<_> = pings[..pings.len() - 1].iter().map(|it| it.at).collect();
    assert_eq!(times.len(), 4, "0, and after 50–55 s each");
    for pair in times.windows(2) {
        let pause = pair[1].duration_since(pair[0]).as_secs();
        assert!((50..=55).contains(&pause), "{pause}");
    }
    assert_eq!(env.said("DEBUG Keep-alive in 'default' cluster-wide: ok."), 4);
}

#[tokio::test(start_paused = true)]
async fn stealth_hides_only_what_went_well() {
    let env = Cluster::new([cluster_peering("kopf.dev")]);
    let mut plan = Plan::new("op");
    plan.settings.peering.stealth = true;
    let operator = env.start(plan);
    env.until(10).await;
    env.server.create(PEERINGS, peering_object("default")).expect("it is new");
    env.until(100).await;
    operator.stop().await;
    assert_eq!(env.said("Keep-alive in 'default' cluster-wide: not found."), 1);
    assert_eq!(env.said("Keep-alive in 'default' cluster-wide: ok."), 0);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_where_the_resource_has_it() {
    let mut resource = cluster_peering("kopf.dev");
    resource.status_subresource = true;
    let env = Cluster::new([resource]);
    env.server.create(PEERINGS, peering_object("default")).expect("it is new");
    let operator = env.start(Plan::new("op"));
    env.until(1).await;
    assert_eq!(names(&env), ["op"]);
    assert_eq!(env.requests("PATCH", "/clusterkopfpeerings/default/status").len(), 1);
    operator.stop().await;
    assert_eq!(names(&env), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_freeze_pauses_until_it_is_lifted_or_expires() {
    let env = cluster();
    let operator = env.start(Plan::new("op"));
    env.until(1).await;
    write(&env, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    env.until(2).await;
    env.create("one");
    env.until(300).await;
    assert_eq!(env.calls(), [""; 0]);
    write(&env, "ops@home", &Value::Null);
    env.until(301).await;
    assert_eq!(env.calls(), ["op create one"]);
    write(&env, "ops@home", &record(100, 60, "2026-01-01T00:05:01Z"));
    env.until(302).await;
    env.create("two");
    env.until(360).await;
    assert_eq!(env.calls().len(), 1);
    env.until(362).await;
    assert_eq!(env.calls(), ["op create one", "op create two"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_not_resumed_twice_after_a_pause() {
    use kopf::logic::handlers::handler::Kind;
    let env = cluster();
    env.create("one");
    let operator = env.start(Plan::new("op").with(&[Kind::Create, Kind::Resume]));
    env.until(1).await;
    let before = env.calls();
    write(&env, "ops@home", &record(100, 10, "2026-01-01T00:00:01Z"));
    env.until(30).await;
    assert_eq!(env.said(RESUMED), 1);
    assert_eq!(env.calls(), before);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_may_finish_in_a_pause_and_none_begins() {
    let env = cluster();
    let mut plan = Plan::new("op");
    plan.creation = Duration::from_secs(5);
    let operator = env.start(plan);
    env.create("one");
    env.until(1).await;
    write(&env, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    env.until(2).await;
    env.create("two");
    env.until(100).await;
    assert_eq!(env.calls(), ["op create one", "op create one done"]);
    write(&env, "ops@home", &Value::Null);
    env.until(110).await;
    assert_eq!(env.calls()[2..], ["op create two", "op create two done"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_resource_or_the_object_nobody_pauses_and_both_may_come_later() {
    let env = Cluster::new([]);
    let operator = env.start(Plan::new("op"));
    env.create("one");
    env.until(5).await;
    assert_eq!(env.calls(), ["op create one"]);
    let crd = definition(&cluster_peering("kopf.dev"));
    env.server.create("customresourcedefinitions.apiextensions.k8s.io", crd).expect("it is new");
    env.until(10).await;
    assert!(env.said("Keep-alive in 'default' cluster-wide: not found.") > 0, "{}", env.log());
    env.server.create(PEERINGS, peering_object("default")).expect("it is new");
    env.until(70).await;
    assert_eq!(names(&env), ["op"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_peering_is_waited_for() {
    let env = Cluster::new([cluster_peering("kopf.dev")]);
    let mut plan = Plan::new("op");
    plan.settings.peering.mandatory = true;
    plan.settings.peering.name = "shop".into();
    let operator = env.start(plan);
    env.create("one");
    env.until(100).await;
    assert_eq!(env.calls(), [""; 0]);
    let told = "WARN The operator is paused: peering is mandatory, and there is no ClusterKopfPeering 'shop' cluster-wide. \
                It resumes when the object is created.";
    assert_eq!(env.said(told), 1, "{}", env.log());
    env.server.create(PEERINGS, peering_object("default")).expect("it is new");
    env.until(101).await;
    assert_eq!(env.calls(), [""; 0], "another name is another peering");
    env.server.create(PEERINGS, peering_object("shop")).expect("it is new");
    env.until(102).await;
    assert_eq!(env.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_peering_without_its_resource_pauses_and_tells_why() {
    let env = Cluster::new([]);
    let mut plan = Plan::new("op");
    plan.settings.peering.mandatory = true;
    let operator = env.start(plan);
    env.create("one");
    env.until(10).await;
    assert_eq!(env.calls(), [""; 0]);
    assert_eq!(env.said("(blockers: peering CRD is missing)."), 1, "{}", env.log());
    assert_eq!(env.said("WARN The operator is paused: peering is mandatory, and the cluster has no ClusterKopfPeering"), 1);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standalone_operator_asks_nothing() {
    let env = cluster();
    let mut plan = Plan::new("op");
    plan.settings.peering.standalone = true;
    let operator = env.start(plan);
    write(&env, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    env.create("one");
    env.until(100).await;
    operator.stop().await;
    assert_eq!(env.calls(), ["op create one"]);
    for method in ["GET", "PATCH"] {
        assert_eq!(env.requests(method, "kopfpeerings"), []);
    }
}

#[tokio::test(start_paused = true)]
async fn operators_of_namespaces_meet_in_each_of_them() {
    const OWN: &str = "kopfpeerings.kopf.dev";
    let env = Cluster::new([
        ResourceDef::new("kopf.dev", "v1", "kopfpeerings", "KopfPeering"),
        cluster_peering("kopf.dev"),
    ]);
    for namespace in [NAMESPACE, "ns2"] {
        let itself = json!({ "metadata": { "name": namespace } });
        env.server.create("namespaces", itself).expect("it is new");
        let object = json!({ "metadata": { "name": "default", "namespace": namespace } });
        env.server.create(OWN, object).expect("it is new");
    }
    let mut plan = Plan::new("op");
    plan.scope = NamespaceScope::Namespaces(vec![NAMESPACE.into(), "ns2".into()]);
    let operator = env.start(plan);
    env.until(1).await;
    let freeze = |it: Value| {
        env.server.merge(OWN, "ns2", "default", json!({ "status": { "ops": it } })).expect("there");
    };
    freeze(record(100, 600, "2026-01-01T00:00:01Z"));
    env.until(2).await;
    env.create("one");
    env.until(10).await;
    assert_eq!(env.calls(), [""; 0], "a conflict in one namespace pauses all");
    assert_eq!(env.said(&format!("Pausing the watch-stream for kopfexamples.v1.kopf.dev in '{NAMESPACE}' (blockers: default@ns2).")), 1);
    freeze(Value::Null);
    env.until(11).await;
    assert_eq!(env.calls(), ["op create one"]);
    operator.stop().await;
    assert_eq!(env.requests("PATCH", "clusterkopfpeerings"), []);
    for namespace in [NAMESPACE, "ns2"] {
        let object = env.server.get(OWN, namespace, "default").expect("it is there");
        assert_eq!(object["status"].get("op"), None);
        let path = format!("/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings/default");
        assert!(env.requests("PATCH", &path).len() >= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn both_groups_are_used_and_each_can_pause() {
    let env = Cluster::new([cluster_peering("kopf.dev"), cluster_peering("zalando.org")]);
    for group in ["kopf.dev", "zalando.org"] {
        let resource = format!("clusterkopfpeerings.{group}");
        env.server.create(&resource, peering_object("default")).expect("it is new");
    }
    let operator = env.start(Plan::new("op"));
    env.until(1).await;
    let legacy = "clusterkopfpeerings.zalando.org";
    let freeze = json!({ "status": { "ops": record(100, 600, "2026-01-01T00:00:01Z") } });
    env.server.merge(legacy, "", "default", freeze).expect("it is there");
    env.until(60).await;
    env.create("one");
    env.until(120).await;
    assert_eq!(env.calls(), [""; 0], "the peace in one group does not lift the pause of the other");
    env.server.merge(legacy, "", "default", json!({ "status": { "ops": null } })).expect("there");
    env.until(121).await;
    assert_eq!(env.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_are_told_once_and_overcome() {
    let env = cluster();
    env.refuse(403, "", "clusterkopfpeerings");
    let operator = env.start(Plan::new("op"));
    env.create("one");
    env.until(60).await;
    assert_eq!(env.calls(), ["op create one"], "peering is not asked for, so nothing waits for it");
    let told = " the peering 'default' cluster-wide, retrying: ";
    assert!(env.said(told) <= 60, "{}", env.log());
    assert!(env.said(told) > 0);
    env.server.clear_faults();
    env.until(100).await;
    assert_eq!(names(&env), ["op"]);
    write(&env, "ops@home", &record(100, 60, "2026-01-01T00:01:40Z"));
    env.refuse(500, "PATCH", "clusterkopfpeerings");
    env.until(150).await;
    env.create("two");
    env.until(165).await;
    assert_eq!(env.calls().len(), 1, "nobody can say whether the freeze was prolonged");
    env.server.clear_faults();
    env.until(175).await;
    assert_eq!(env.calls(), ["op create one", "op create two"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_peering_that_hangs_holds_up_neither_the_work_nor_the_end() {
    let env = cluster();
    env.server.fault(
        Fault::always(FaultEffect::Latency(Duration::from_hours(1)))
            .on("PATCH", "clusterkopfpeerings"),
    );
    let operator = env.start(Plan::new("op"));
    env.create("one");
    env.until(20).await;
    assert_eq!(env.calls(), ["op create one"]);
    write(&env, "ops@home", &record(100, 600, "2026-01-01T00:00:20Z"));
    env.until(21).await;
    env.create("two");
    env.until(60).await;
    assert_eq!(env.calls().len(), 1, "others are seen while a request hangs");
    operator.stop().await;
    assert!(env.start.elapsed() < Duration::from_secs(80), "{:?}", env.start.elapsed());
    assert_eq!(
        env.said("ERROR Couldn't remove self from the peering. Ignoring."),
        1,
        "{}",
        env.log()
    );
}

#[tokio::test(start_paused = true)]
async fn records_of_a_deleted_object_count_until_their_time_has_come() {
    let env = cluster();
    write(&env, "boss", &record(100, 60, "2026-01-01T00:00:00Z"));
    let operator = env.start(Plan::new("op"));
    env.create("one");
    env.until(10).await;
    env.server.remove(PEERINGS, "", "default").expect("it is there");
    env.until(59).await;
    assert_eq!(env.calls(), [""; 0], "the other operator may still be at work");
    env.until(62).await;
    assert_eq!(env.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_somebody_removes_is_written_again() {
    let env = cluster();
    let operator = env.start(Plan::new("op"));
    env.until(20).await;
    write(&env, "op", &Value::Null);
    env.until(21).await;
    assert_eq!(names(&env), ["op"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn operators_with_shards_share_the_work() {
    let env = cluster();
    let start = |name: &'static str, shard: &str| {
        let mut plan = Plan::new(name).with(&[kopf::logic::handlers::handler::Kind::Event]);
        plan.settings.watching.shard_selectors.insert("*".into(), shard.into());
        env.start(plan)
    };
    let first = start("first", "0/2");
    env.until(1).await;
    let second = start("second", "1/2");
    env.until(10).await;
    env.create("one");
    env.until(20).await;
    // The embedded server has no shards; the test checks that no operator pauses.
    assert_eq!(env.calls().len(), 2);
    assert_eq!(env.said("Possibly conflicting operators"), 0);
    write(&env, "boss", &record(1, 600, "2026-01-01T00:00:20Z"));
    env.until(21).await;
    env.create("two");
    env.until(30).await;
    assert_eq!(env.calls().len(), 2, "stronger operators are obeyed all the same");
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn daemons_are_stopped_in_a_pause_and_start_again() {
    use kopf::logic::handlers::handler::Kind;
    let env = cluster();
    env.create("one");
    let operator = env.start(Plan::new("op").with(&[Kind::Daemon]));
    env.until(1).await;
    assert_eq!(env.calls(), ["op daemon one"]);
    write(&env, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    env.until(30).await;
    assert_eq!(env.calls(), ["op daemon one", "op daemon one stops"]);
    write(&env, "ops@home", &Value::Null);
    env.until(60).await;
    assert_eq!(env.calls(), ["op daemon one", "op daemon one stops", "op daemon one"]);
    operator.stop().await;
}

/// Returns a record of a stronger operator whose clock is `ahead` seconds ahead of the operator's clock.
fn skewed(env: &Cluster, ahead: i64) -> Value {
    let lastseen = env.clock.now() + jiff::SignedDuration::from_secs(ahead);
    record(10, 60, &lastseen.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_peer_with_a_slow_clock_is_alive_while_it_renews_its_record() {
    let env = cluster();
    write(&env, "boss", &skewed(&env, -600));
    let operator = env.start(Plan::new("op"));
    for second in (30..400).step_by(50) {
        env.until(second).await;
        write(&env, "boss", &skewed(&env, -600));
        env.until(second + 1).await;
        env.create(&format!("object-{second}"));
    }
    assert_eq!(env.calls(), [""; 0]);
    assert_eq!(names(&env), ["boss", "op"], "a record that is renewed is never removed");
    assert_eq!(env.said("INFO Pausing operations in favour of"), 1, "{}", env.log());
    env.until(450).await;
    assert_eq!(env.calls().len(), 8, "unchanged for its lifetime");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_with_a_fast_clock_holds_up_nobody_longer_than_its_lifetime() {
    let env = cluster();
    let operator = env.start(Plan::new("op"));
    env.until(5).await;
    write(&env, "boss", &skewed(&env, 600));
    env.until(50).await;
    write(&env, "boss", &skewed(&env, 600));
    env.create("one");
    env.until(109).await;
    assert_eq!(env.calls(), [""; 0]);
    env.until(112).await;
    assert_eq!(env.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_was_long_dead_at_the_first_sight_holds_up_nobody_and_is_removed_later() {
    let env = cluster();
    write(&env, "boss", &skewed(&env, -61));
    let operator = env.start(Plan::new("op"));
    env.create("one");
    env.until(2).await;
    assert_eq!(env.calls(), ["op create one"]);
    assert_eq!(names(&env), ["boss", "op"], "its clock may be slow");
    env.until(130).await;
    assert_eq!(names(&env), ["op"]);
    operator.stop().await;
}
