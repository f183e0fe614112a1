//! Operators that pause for each other: the facts of Kopf 1.45.2, and what we do better.

use std::time::Duration;

use kopf::reactor::Scope;
use kopf_apiserver::{Effect, Fault, ResourceDef};
use serde_json::{Value, json};

use super::site::{NAMESPACE, Plan, Site, cluster_peering, peering_object};

const PEERINGS: &str = "clusterkopfpeerings.kopf.dev";
const RESUMED: &str = "INFO Resuming operations after the pause. \
                       Conflicting operators with the same priority are gone.";

/// A cluster with the usual peering object.
fn site() -> Site {
    let site = Site::new([cluster_peering("kopf.dev")]);
    site.server.create(PEERINGS, peering_object("default")).expect("it is new");
    site
}

/// The records of the peering object.
fn records(site: &Site) -> Value {
    let object = site.server.get(PEERINGS, "", "default").expect("it is there");
    object.get("status").cloned().unwrap_or_else(|| json!({}))
}

fn names(site: &Site) -> Vec<String> {
    records(site).as_object().expect("records").keys().cloned().collect()
}

/// Somebody who is not here writes a record.
fn write(site: &Site, name: &str, record: &Value) {
    let status = json!({ "status": { name: record } });
    site.server.merge(PEERINGS, "", "default", status).expect("it is there");
}

fn record(priority: i64, lifetime: u64, lastseen: &str) -> Value {
    json!({ "priority": priority, "lifetime": lifetime, "lastseen": lastseen })
}

#[tokio::test(start_paused = true)]
async fn the_stronger_operator_works_and_the_weaker_pauses() {
    let site = site();
    let weak = site.start(Plan::new("weak"));
    site.until(1).await;
    site.create("one");
    site.until(5).await;
    let strong = site.start(Plan::new("strong").priority(10));
    site.until(10).await;
    site.create("two");
    site.until(20).await;
    strong.stop().await;
    site.until(21).await;
    site.create("three");
    site.until(25).await;
    assert_eq!(site.calls(), ["weak create one", "strong create two", "weak create three"]);
    assert_eq!(names(&site), ["weak"]);
    let pausing = "INFO Pausing operations in favour of [<Peer strong: priority=10, lifetime=60, lastseen='2026-01-01T00:00:05+00:00'>].";
    assert_eq!((site.said(pausing), site.said(RESUMED)), (1, 1), "{}", site.log());
    let streams = [
        "DEBUG Pausing the watch-stream for kopfexamples.v1.kopf.dev cluster-wide (blockers: default@None).",
        "DEBUG Resuming the watch-stream for kopfexamples.v1.kopf.dev cluster-wide.",
    ];
    assert!(streams.iter().all(|it| site.said(it) == 1), "{}", site.log());
    weak.stop().await;
    assert_eq!(names(&site), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn equal_operators_all_pause_until_one_is_left() {
    let site = site();
    let first = site.start(Plan::new("first"));
    site.until(5).await;
    let second = site.start(Plan::new("second"));
    site.until(6).await;
    site.create("one");
    site.until(50).await;
    assert_eq!(site.calls(), [""; 0]);
    assert!(
        site.said("WARN Possibly conflicting operators with the same priority: [<Peer first: ") > 0
    );
    assert!(
        site.said("WARN Possibly conflicting operators with the same priority: [<Peer second: ")
            > 0
    );
    assert_eq!(
        site.said("WARN Pausing all operators, including self: [<Peer first: "),
        2,
        "{}",
        site.log()
    );
    first.stop().await;
    site.until(51).await;
    assert_eq!(site.calls(), ["second create one"]);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_blocks_until_its_time_has_come_and_is_removed() {
    let site = site();
    let strong = site.start(Plan::new("strong").priority(1));
    site.until(1).await;
    let weak = site.start(Plan::new("weak"));
    site.until(2).await;
    drop(strong); // kill -9
    site.create("one");
    site.until(59).await;
    assert_eq!(site.calls(), [""; 0]);
    site.until(61).await;
    assert_eq!(site.calls(), ["weak create one"]);
    assert_eq!(names(&site), ["weak"]);
    let removals = site.requests("PATCH", "/clusterkopfpeerings/default");
    let removal = json!({ "status": { "strong": null } });
    assert_eq!(removals.iter().filter(|it| it.json() == removal).count(), 1);
    weak.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_is_written_renewed_in_time_and_removed_at_the_end() {
    let site = site();
    let operator = site.start(Plan::new("op"));
    site.until(200).await;
    operator.stop().await;
    let pings = site.requests("PATCH", "/apis/kopf.dev/v1/clusterkopfpeerings/default");
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
    assert_eq!(site.said("DEBUG Keep-alive in 'default' cluster-wide: ok."), 4);
}

#[tokio::test(start_paused = true)]
async fn stealth_hides_only_what_went_well() {
    let site = Site::new([cluster_peering("kopf.dev")]);
    let mut plan = Plan::new("op");
    plan.settings.peering.stealth = true;
    let operator = site.start(plan);
    site.until(10).await;
    site.server.create(PEERINGS, peering_object("default")).expect("it is new");
    site.until(100).await;
    operator.stop().await;
    assert_eq!(site.said("Keep-alive in 'default' cluster-wide: not found."), 1);
    assert_eq!(site.said("Keep-alive in 'default' cluster-wide: ok."), 0);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_where_the_resource_has_it() {
    let mut resource = cluster_peering("kopf.dev");
    resource.status_subresource = true;
    let site = Site::new([resource]);
    site.server.create(PEERINGS, peering_object("default")).expect("it is new");
    let operator = site.start(Plan::new("op"));
    site.until(1).await;
    assert_eq!(names(&site), ["op"]);
    assert_eq!(site.requests("PATCH", "/clusterkopfpeerings/default/status").len(), 1);
    operator.stop().await;
    assert_eq!(names(&site), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_freeze_pauses_until_it_is_lifted_or_expires() {
    let site = site();
    let operator = site.start(Plan::new("op"));
    site.until(1).await;
    write(&site, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    site.until(2).await;
    site.create("one");
    site.until(300).await;
    assert_eq!(site.calls(), [""; 0]);
    write(&site, "ops@home", &Value::Null);
    site.until(301).await;
    assert_eq!(site.calls(), ["op create one"]);
    write(&site, "ops@home", &record(100, 60, "2026-01-01T00:05:01Z"));
    site.until(302).await;
    site.create("two");
    site.until(360).await;
    assert_eq!(site.calls().len(), 1);
    site.until(362).await;
    assert_eq!(site.calls(), ["op create one", "op create two"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_not_resumed_twice_after_a_pause() {
    use kopf::logic::handler::Kind;
    let site = site();
    site.create("one");
    let operator = site.start(Plan::new("op").with(&[Kind::Create, Kind::Resume]));
    site.until(1).await;
    let before = site.calls();
    write(&site, "ops@home", &record(100, 10, "2026-01-01T00:00:01Z"));
    site.until(30).await;
    assert_eq!(site.said(RESUMED), 1);
    assert_eq!(site.calls(), before);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_may_finish_in_a_pause_and_none_begins() {
    let site = site();
    let mut plan = Plan::new("op");
    plan.creation = Duration::from_secs(5);
    let operator = site.start(plan);
    site.create("one");
    site.until(1).await;
    write(&site, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    site.until(2).await;
    site.create("two");
    site.until(100).await;
    assert_eq!(site.calls(), ["op create one", "op create one done"]);
    write(&site, "ops@home", &Value::Null);
    site.until(110).await;
    assert_eq!(site.calls()[2..], ["op create two", "op create two done"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_resource_or_the_object_nobody_pauses_and_both_may_come_later() {
    let site = Site::new([]);
    let operator = site.start(Plan::new("op"));
    site.create("one");
    site.until(5).await;
    assert_eq!(site.calls(), ["op create one"]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": PEERINGS },
        "spec": {
            "group": "kopf.dev", "scope": "Cluster",
            "names": { "plural": "clusterkopfpeerings", "singular": "clusterkopfpeering", "kind": "ClusterKopfPeering" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    site.server.create("customresourcedefinitions.apiextensions.k8s.io", definition).expect("new");
    site.until(10).await;
    assert!(site.said("Keep-alive in 'default' cluster-wide: not found.") > 0, "{}", site.log());
    site.server.create(PEERINGS, peering_object("default")).expect("it is new");
    site.until(70).await;
    assert_eq!(names(&site), ["op"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_peering_is_waited_for() {
    let site = Site::new([cluster_peering("kopf.dev")]);
    let mut plan = Plan::new("op");
    plan.settings.peering.mandatory = true;
    plan.settings.peering.name = "shop".into();
    let operator = site.start(plan);
    site.create("one");
    site.until(100).await;
    assert_eq!(site.calls(), [""; 0]);
    let told = "WARN The operator is paused: peering is mandatory, and there is no ClusterKopfPeering 'shop' cluster-wide. \
                It goes on when the object is created.";
    assert_eq!(site.said(told), 1, "{}", site.log());
    site.server.create(PEERINGS, peering_object("default")).expect("it is new");
    site.until(101).await;
    assert_eq!(site.calls(), [""; 0], "another name is another peering");
    site.server.create(PEERINGS, peering_object("shop")).expect("it is new");
    site.until(102).await;
    assert_eq!(site.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_peering_without_its_resource_pauses_and_tells_why() {
    let site = Site::new([]);
    let mut plan = Plan::new("op");
    plan.settings.peering.mandatory = true;
    let operator = site.start(plan);
    site.create("one");
    site.until(10).await;
    assert_eq!(site.calls(), [""; 0]);
    assert_eq!(site.said("(blockers: peering CRD is missing)."), 1, "{}", site.log());
    assert_eq!(site.said("WARN The operator is paused: peering is mandatory, and the cluster has no ClusterKopfPeering"), 1);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standalone_operator_asks_nothing() {
    let site = site();
    let mut plan = Plan::new("op");
    plan.settings.peering.standalone = true;
    let operator = site.start(plan);
    write(&site, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    site.create("one");
    site.until(100).await;
    operator.stop().await;
    assert_eq!(site.calls(), ["op create one"]);
    for method in ["GET", "PATCH"] {
        assert_eq!(site.requests(method, "kopfpeerings"), []);
    }
}

#[tokio::test(start_paused = true)]
async fn operators_of_namespaces_meet_in_each_of_them() {
    const OWN: &str = "kopfpeerings.kopf.dev";
    let site = Site::new([
        ResourceDef::new("kopf.dev", "v1", "kopfpeerings", "KopfPeering"),
        cluster_peering("kopf.dev"),
    ]);
    for namespace in [NAMESPACE, "ns2"] {
        let itself = json!({ "metadata": { "name": namespace } });
        site.server.create("namespaces", itself).expect("it is new");
        let object = json!({ "metadata": { "name": "default", "namespace": namespace } });
        site.server.create(OWN, object).expect("it is new");
    }
    let mut plan = Plan::new("op");
    plan.scope = Scope::Namespaces(vec![NAMESPACE.into(), "ns2".into()]);
    let operator = site.start(plan);
    site.until(1).await;
    let freeze = |it: Value| {
        site.server
            .merge(OWN, "ns2", "default", json!({ "status": { "ops": it } }))
            .expect("there");
    };
    freeze(record(100, 600, "2026-01-01T00:00:01Z"));
    site.until(2).await;
    site.create("one");
    site.until(10).await;
    assert_eq!(site.calls(), [""; 0], "a conflict in one namespace pauses all");
    assert_eq!(site.said(&format!("Pausing the watch-stream for kopfexamples.v1.kopf.dev in '{NAMESPACE}' (blockers: default@ns2).")), 1);
    freeze(Value::Null);
    site.until(11).await;
    assert_eq!(site.calls(), ["op create one"]);
    operator.stop().await;
    assert_eq!(site.requests("PATCH", "clusterkopfpeerings"), []);
    for namespace in [NAMESPACE, "ns2"] {
        let object = site.server.get(OWN, namespace, "default").expect("it is there");
        assert_eq!(object["status"].get("op"), None);
        let path = format!("/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings/default");
        assert!(site.requests("PATCH", &path).len() >= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn both_groups_are_used_and_each_can_pause() {
    let site = Site::new([cluster_peering("kopf.dev"), cluster_peering("zalando.org")]);
    for group in ["kopf.dev", "zalando.org"] {
        let resource = format!("clusterkopfpeerings.{group}");
        site.server.create(&resource, peering_object("default")).expect("it is new");
    }
    let operator = site.start(Plan::new("op"));
    site.until(1).await;
    let legacy = "clusterkopfpeerings.zalando.org";
    let freeze = json!({ "status": { "ops": record(100, 600, "2026-01-01T00:00:01Z") } });
    site.server.merge(legacy, "", "default", freeze).expect("it is there");
    site.until(60).await;
    site.create("one");
    site.until(120).await;
    assert_eq!(
        site.calls(),
        [""; 0],
        "the peace in one group does not lift the pause of the other"
    );
    site.server.merge(legacy, "", "default", json!({ "status": { "ops": null } })).expect("there");
    site.until(121).await;
    assert_eq!(site.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_are_told_once_and_overcome() {
    let site = site();
    let refuse = |code| Effect::Refuse { code, retry_after_seconds: None };
    site.server.fault(Fault::always(refuse(403)).on("", "clusterkopfpeerings"));
    let operator = site.start(Plan::new("op"));
    site.create("one");
    site.until(60).await;
    assert_eq!(
        site.calls(),
        ["op create one"],
        "peering is not asked for, so nothing waits for it"
    );
    let told = "WARN The peering 'default' cluster-wide cannot be ";
    assert!(site.said(told) <= 60, "{}", site.log());
    assert!(site.said(told) > 0);
    site.server.clear_faults();
    site.until(100).await;
    assert_eq!(names(&site), ["op"]);
    write(&site, "ops@home", &record(100, 60, "2026-01-01T00:01:40Z"));
    site.server.fault(Fault::always(refuse(500)).on("PATCH", "clusterkopfpeerings"));
    site.until(150).await;
    site.create("two");
    site.until(165).await;
    assert_eq!(site.calls().len(), 1, "nobody can say whether the freeze was prolonged");
    site.server.clear_faults();
    site.until(175).await;
    assert_eq!(site.calls(), ["op create one", "op create two"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_peering_that_hangs_holds_up_neither_the_work_nor_the_end() {
    let site = site();
    site.server.fault(
        Fault::always(Effect::Latency(Duration::from_hours(1))).on("PATCH", "clusterkopfpeerings"),
    );
    let operator = site.start(Plan::new("op"));
    site.create("one");
    site.until(20).await;
    assert_eq!(site.calls(), ["op create one"]);
    write(&site, "ops@home", &record(100, 600, "2026-01-01T00:00:20Z"));
    site.until(21).await;
    site.create("two");
    site.until(60).await;
    assert_eq!(site.calls().len(), 1, "others are seen while a request hangs");
    operator.stop().await;
    assert!(site.start.elapsed() < Duration::from_secs(80), "{:?}", site.start.elapsed());
    assert_eq!(
        site.said("ERROR Couldn't remove self from the peering. Ignoring."),
        1,
        "{}",
        site.log()
    );
}

#[tokio::test(start_paused = true)]
async fn records_of_a_deleted_object_count_until_their_time_has_come() {
    let site = site();
    write(&site, "boss", &record(100, 60, "2026-01-01T00:00:00Z"));
    let operator = site.start(Plan::new("op"));
    site.create("one");
    site.until(10).await;
    site.server.remove(PEERINGS, "", "default").expect("it is there");
    site.until(59).await;
    assert_eq!(site.calls(), [""; 0], "the other operator may still be at work");
    site.until(62).await;
    assert_eq!(site.calls(), ["op create one"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_somebody_removes_is_written_again() {
    let site = site();
    let operator = site.start(Plan::new("op"));
    site.until(20).await;
    write(&site, "op", &Value::Null);
    site.until(21).await;
    assert_eq!(names(&site), ["op"]);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn operators_with_shards_share_the_work() {
    let site = site();
    let start = |name: &'static str, shard: &str| {
        let mut plan = Plan::new(name).with(&[kopf::logic::handler::Kind::Event]);
        plan.settings.watching.shard_selectors.insert("*".into(), shard.into());
        site.start(plan)
    };
    let first = start("first", "0/2");
    site.until(1).await;
    let second = start("second", "1/2");
    site.until(10).await;
    site.create("one");
    site.until(20).await;
    // The embedded server knows no shards: what counts is that nobody pauses.
    assert_eq!(site.calls().len(), 2);
    assert_eq!(site.said("Possibly conflicting operators"), 0);
    write(&site, "boss", &record(1, 600, "2026-01-01T00:00:20Z"));
    site.until(21).await;
    site.create("two");
    site.until(30).await;
    assert_eq!(site.calls().len(), 2, "stronger operators are obeyed all the same");
    first.stop().await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn daemons_are_stopped_in_a_pause_and_start_again() {
    use kopf::logic::handler::Kind;
    let site = site();
    site.create("one");
    let operator = site.start(Plan::new("op").with(&[Kind::Daemon]));
    site.until(1).await;
    assert_eq!(site.calls(), ["op daemon one"]);
    write(&site, "ops@home", &record(100, 600, "2026-01-01T00:00:01Z"));
    site.until(30).await;
    assert_eq!(site.calls(), ["op daemon one", "op daemon one stops"]);
    write(&site, "ops@home", &Value::Null);
    site.until(60).await;
    assert_eq!(site.calls(), ["op daemon one", "op daemon one stops", "op daemon one"]);
    operator.stop().await;
}
