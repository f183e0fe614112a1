//! What tests can do to the server.

use super::*;

#[tokio::test(start_paused = true)]
async fn changes_can_be_seen_late() {
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
async fn a_late_change_is_not_lost_by_reconnecting() {
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
async fn closing_watches_cuts_off_what_is_on_its_way() {
    let cluster = Cluster::plain();
    cluster.server.set_latency(Duration::from_secs(5));
    let mut watch = cluster.watch("").await;
    cluster.post(OBJECTS, object("n1")).await;
    assert!(watch.is_silent().await);
    cluster.server.close_watches();
    assert_eq!(watch.next().await, "1 END");
}

#[tokio::test(start_paused = true)]
async fn requests_are_remembered() {
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
async fn an_edit_from_aside_reaches_every_part() {
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
