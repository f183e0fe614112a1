//! Deletions, with and without finalizers.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_object_without_finalizers_is_removed_at_once() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object_with("n1", "uid", json!("uid-n1"))).await;
    let mut watch = cluster.watch("&resourceVersion=1").await;
    let (status, answer) = cluster.delete(N1).await;
    assert_eq!((status, &answer["status"]), (200, &json!("Success")));
    let details =
        json!({ "name": "n1", "group": "kopf.dev", "kind": "kopfexamples", "uid": "uid-n1" });
    assert_eq!(answer["details"], details);
    assert_eq!(watch.next().await, "0 DELETED n1 2");
    assert_eq!(cluster.get(N1).await.0, 404);
    assert_eq!(cluster.delete(N1).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_is_marked_once() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object_with("n1", "finalizers", json!(["a.dev/b"]))).await;
    let mut watch = cluster.watch("&resourceVersion=1").await;
    tokio::time::advance(Duration::from_secs(3)).await;
    let (status, marked) = cluster.delete(N1).await;
    assert_eq!((status, version(&marked)), (200, "2"));
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:03Z");
    assert_eq!(watch.next().await, "3 MODIFIED n1 2");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(cluster.delete(N1).await, (200, marked));
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_stamping_server_counts_a_deletion_as_a_generation() {
    let cluster = Cluster::stamping();
    cluster.post(OBJECTS, object_with("n1", "finalizers", json!(["a.dev/b"]))).await;
    let (_, marked) = cluster.delete(N1).await;
    assert_eq!(marked["metadata"]["generation"], 2);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[tokio::test(start_paused = true)]
async fn removing_the_last_finalizer_returns_the_object_in_its_old_version() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object_with("n1", "finalizers", json!(["a.dev/b", "c.dev/d"]))).await;
    cluster.delete(N1).await;
    let mut watch = cluster.watch("&resourceVersion=2").await;

    let one_less = json!([{ "op": "remove", "path": "/metadata/finalizers/0" }]);
    let (_, patched) = cluster.patch(N1, JSON, one_less).await;
    assert_eq!(version(&patched), "3");
    assert_eq!(watch.next().await, "0 MODIFIED n1 3");

    let none = json!([{ "op": "remove", "path": "/metadata/finalizers" }]);
    let (status, last) = cluster.patch(N1, JSON, none).await;
    assert_eq!((status, version(&last)), (200, "3"));
    assert_eq!(last["metadata"].get("finalizers"), None);

    let event = watch.event().await.expect("an event");
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["resourceVersion"], "4");
    assert_eq!(event["object"]["metadata"]["finalizers"], json!(["c.dev/d"]));
    assert_eq!(cluster.get(N1).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_has_a_new_uid() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let mut watch = cluster.watch("&resourceVersion=1").await;
    cluster.delete(N1).await;
    cluster.post(OBJECTS, object("n1")).await;
    assert_eq!(watch.next().await, "0 DELETED n1 2");
    assert_eq!(watch.next().await, "0 ADDED n1 3");
}
