//! Faults and other controls for tests.

use kopf_apiserver::{Fault, FaultEffect};

use super::*;

#[tokio::test(start_paused = true)]
async fn watchers_can_see_changes_late() {
    let cluster = Cluster::plain();
    cluster.server.set_latency(Duration::from_secs(2));
    let mut watch = cluster.watch("").await;
    cluster.post(OBJECTS, object("n1")).await;
    tokio::time::advance(Duration::from_millis(500)).await;
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    assert_eq!(watch.next().await, "2 ADDED n1 1");
    assert_eq!(watch.next().await, "2.5 MODIFIED n1 2");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_change_is_not_lost_by_reconnecting() {
    let cluster = Cluster::plain();
    cluster.server.set_latency(Duration::from_secs(5));
    let mut watch = cluster.watch("&resourceVersion=0&timeoutSeconds=1").await;
    cluster.post(OBJECTS, object("n1")).await;
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    assert_eq!(watch.next().await, "1 END");
    let mut watch = cluster.watch("&resourceVersion=1").await;
    assert_eq!(watch.next().await, "5 MODIFIED n1 2");
}

#[tokio::test(start_paused = true)]
async fn the_next_patches_can_fail() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    cluster.server.inject([500, 200, 409]);
    let mut statuses = Vec::new();
    for turn in 0..4 {
        statuses.push(cluster.patch(N1, MERGE, json!({ "spec": { "turn": turn } })).await.0);
    }
    assert_eq!(statuses, [500, 200, 409, 200]);
    assert_eq!(cluster.server.revision(), 3);
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_closed() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("").await;
    assert!(watch.is_silent().await);
    cluster.server.close_watches();
    assert_eq!(watch.next().await, "1 END");
    assert!(cluster.watch("").await.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn closing_watches_drops_delayed_events() {
    let cluster = Cluster::plain();
    cluster.server.set_latency(Duration::from_secs(5));
    let mut watch = cluster.watch("").await;
    cluster.post(OBJECTS, object("n1")).await;
    assert!(watch.is_silent().await);
    cluster.server.close_watches();
    assert_eq!(watch.next().await, "1 END");
}

#[tokio::test(start_paused = true)]
async fn requests_are_logged() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    tokio::time::advance(Duration::from_secs(7)).await;
    cluster.patch(&format!("{N1}?fieldManager=x"), MERGE, json!({ "spec": { "a": 2 } })).await;
    let requests = cluster.server.requests();
    let patch = requests.last().expect("a request");
    assert_eq!(patch.at - cluster.start, Duration::from_secs(7));
    assert_eq!((patch.method.as_str(), patch.path.as_str()), ("PATCH", N1));
    assert_eq!((patch.query.as_str(), patch.content_type.as_str()), ("fieldManager=x", MERGE));
    assert_eq!(patch.json(), json!({ "spec": { "a": 2 } }));
    assert_eq!((patch.status, patch.version.as_deref()), (200, Some("2")));
}

#[tokio::test(start_paused = true)]
async fn an_edit_past_the_api_reaches_every_part() {
    let cluster = Cluster::stamping();
    cluster
        .server
        .create(KEX, object_with("n1", "finalizers", json!(["a.dev/b"])))
        .expect("created");
    let edited = cluster.server.merge(KEX, "ns1", "n1", json!({ "status": { "x": 1 } }));
    assert_eq!(edited.expect("edited")["status"], json!({ "x": 1 }));
    cluster.server.delete(KEX, "ns1", "n1").expect("marked");
    assert_eq!(cluster.server.list(KEX).len(), 1);
    let free = json!({ "metadata": { "finalizers": [] } });
    cluster.server.merge(KEX, "ns1", "n1", free).expect("freed");
    assert_eq!(cluster.server.get(KEX, "ns1", "n1"), None);
}

#[tokio::test(start_paused = true)]
async fn responses_can_be_late_refused_or_lost_after_the_write() {
    let cluster = Cluster::plain();
    cluster
        .server
        .fault(Fault::always(FaultEffect::Latency(Duration::from_secs(3))).on("POST", "").times(1));
    assert_eq!(cluster.post(OBJECTS, object("n1")).await.0, 201);
    assert_eq!(cluster.start.elapsed(), Duration::from_secs(3));

    let refuse = FaultEffect::Refuse { code: 429, retry_after_seconds: Some(7) };
    cluster.server.fault(Fault::always(refuse).on("GET", "/n1").times(1));
    let request = Request::get(N1).body(Body::empty()).expect("a valid request");
    let response = cluster.client.send(request).await.expect("the server answers");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"7".parse().expect("a value"))
    );

    cluster.server.fault(Fault::always(FaultEffect::TimeoutAfterwards).on("PATCH", "").times(1));
    assert_eq!(cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await.0, 504);
    assert_eq!(cluster.get(N1).await.1["spec"], json!({ "a": 2 }));
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_shows_an_earlier_state() {
    let cluster = Cluster::plain();
    for name in ["n1", "n2", "n3"] {
        cluster.post(OBJECTS, object(name)).await;
    }
    cluster.server.fault(Fault::always(FaultEffect::StaleList(2)).on("GET", "").times(1));
    let counts = [cluster.get(OBJECTS).await.1, cluster.get(OBJECTS).await.1];
    let counts = counts.map(|it| it["items"].as_array().map(Vec::len));
    assert_eq!(counts, [Some(1), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn watch_events_can_be_lost_or_late_or_stop() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("").await;
    let faults = [
        FaultEffect::Close,
        FaultEffect::Stall,
        FaultEffect::LateEvent(Duration::from_secs(4)),
        FaultEffect::LostEvent,
    ];
    cluster.server.fault(Fault::always(faults[3].clone()).times(1));
    cluster.server.fault(Fault::always(faults[2].clone()).times(1));
    for name in ["n1", "n2", "n3"] {
        cluster.post(OBJECTS, object(name)).await;
    }
    assert_eq!(watch.next().await, "4 ADDED n2 2");
    assert_eq!(watch.next().await, "4 ADDED n3 3");

    cluster.server.fault(Fault::always(faults[1].clone()).times(1));
    cluster.server.fault(Fault::always(faults[0].clone()).times(1));
    let mut other = cluster.watch("&resourceVersion=3&timeoutSeconds=60").await;
    cluster.post(OBJECTS, object("n4")).await;
    cluster.post(OBJECTS, object("n5")).await;
    // It is silent until its timeout, although there are changes.
    assert_eq!(other.next().await, "64 END");
    assert_eq!(watch.next().await, "64 END");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_faults() {
    let statuses = async |seed| {
        let cluster = Cluster::new(ApiServer::builder().stamps(false).seed(seed), kex());
        let effect = FaultEffect::Refuse { code: 503, retry_after_seconds: None };
        cluster.server.fault(Fault::always(effect).chance(0.5));
        let mut statuses = Vec::new();
        for _ in 0..32 {
            statuses.push(cluster.get(OBJECTS).await.0);
        }
        cluster.server.clear_faults();
        assert_eq!(cluster.get(OBJECTS).await.0, 200);
        statuses
    };
    let first = statuses(1).await;
    assert!(first.contains(&200) && first.contains(&503), "{first:?}");
    assert_eq!(statuses(1).await, first);
    assert_ne!(statuses(2).await, first);
}
