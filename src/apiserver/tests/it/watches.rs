//! Watches on virtual time.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_starts_with_the_existing_objects() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n2")).await;
    cluster.post(OBJECTS, object("n1")).await;
    for query in ["", "&resourceVersion=0"] {
        let mut watch = cluster.watch(query).await;
        assert_eq!(watch.next().await, "0 ADDED n1 2");
        assert_eq!(watch.next().await, "0 ADDED n2 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sends_all_later_changes() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    cluster.delete(N1).await;
    let mut watch = cluster.watch("&resourceVersion=1").await;
    assert_eq!(watch.next().await, "0 MODIFIED n1 2");
    assert_eq!(watch.next().await, "0 DELETED n1 3");
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn watchers_see_edits_past_the_api() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("").await;
    let server = cluster.server.clone();
    let edits = async {
        server.create(KEX, object("n1")).expect("created");
        tokio::time::sleep(Duration::from_secs(10)).await;
        server.merge(KEX, "ns1", "n1", json!({ "spec": { "a": 2 } })).expect("merged");
        tokio::time::sleep(Duration::from_secs(10)).await;
        server.delete(KEX, "ns1", "n1").expect("deleted");
    };
    let events = async { [watch.next().await, watch.next().await, watch.next().await] };
    let ((), events) = tokio::join!(edits, events);
    assert_eq!(events, ["0 ADDED n1 1", "10 MODIFIED n1 2", "20 DELETED n1 3"]);
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_and_resources_are_not_seen() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("").await;
    let mut body = object("n1");
    body["metadata"]["namespace"] = json!("ns2");
    cluster.server.create(KEX, body).expect("created");
    let pod = json!({ "kind": "Pod", "metadata": { "name": "p", "namespace": "ns1" } });
    cluster.server.create("pods", pod).expect("created");
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_longer_matches_is_deleted_for_the_watcher() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("&labelSelector=a%3Dx").await;
    cluster.post(OBJECTS, object("n1")).await;
    for label in ["x", "x", "y"] {
        let patch = json!({ "metadata": { "labels": { "a": label } }, "spec": { label: label } });
        cluster.patch(N1, MERGE, patch).await;
    }
    cluster.patch(N1, MERGE, json!({ "metadata": { "labels": { "a": "x", "b": "" } } })).await;
    cluster.delete(N1).await;
    assert_eq!(watch.next().await, "0 ADDED n1 2");
    let event = watch.event().await.expect("an event");
    assert_eq!(event["type"], "DELETED");
    // The last state that matched, in the version of the change.
    assert_eq!(event["object"]["metadata"]["labels"], json!({ "a": "x" }));
    assert_eq!(version(&event["object"]), "3");
    assert_eq!(watch.next().await, "0 ADDED n1 4");
    assert_eq!(watch.next().await, "0 DELETED n1 5");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("&timeoutSeconds=30").await;
    assert_eq!(watch.next().await, "30 END");
}

#[tokio::test(start_paused = true)]
async fn idle_watches_get_bookmarks_if_they_want_them() {
    let cluster = Cluster::plain();
    let mut with = cluster.watch("&allowWatchBookmarks=true&timeoutSeconds=130").await;
    let mut without = cluster.watch("&timeoutSeconds=130").await;
    cluster.server.create("pods", json!({ "metadata": { "name": "p" } })).expect("created");
    // The first bookmark marks the end of the existing objects.
    assert_eq!(with.next().await, "0 BOOKMARK - 0");
    assert_eq!(with.next().await, "60 BOOKMARK - 1");
    assert_eq!(with.next().await, "120 BOOKMARK - 1");
    assert_eq!(with.next().await, "130 END");
    assert_eq!(without.next().await, "130 END");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_can_mark_the_end_of_the_existing_objects() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let query =
        "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = cluster.watch(query).await;
    assert_eq!(watch.next().await, "0 ADDED n1 1");
    let bookmark = json!({
        "type": "BOOKMARK",
        "object": {
            "kind": "KopfExample",
            "apiVersion": "kopf.dev/v1",
            "metadata": {
                "resourceVersion": "1",
                "annotations": { "k8s.io/initial-events-end": "true" },
            },
        },
    });
    assert_eq!(watch.event().await, Some(bookmark));
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_compacted_version_expires_for_new_watches_only() {
    let cluster = Cluster::plain();
    let mut old = cluster.watch("").await;
    cluster.post(OBJECTS, object("n1")).await;
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    cluster.server.compact();
    assert_eq!(old.next().await, "0 ADDED n1 1");
    assert_eq!(old.next().await, "0 MODIFIED n1 2");

    let mut new = cluster.watch("&resourceVersion=1").await;
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 1 (2)",
        "reason": "Expired",
        "code": 410,
    });
    assert_eq!(new.event().await, Some(json!({ "type": "ERROR", "object": status })));
    assert_eq!(new.event().await, None);
    assert!(cluster.watch("&resourceVersion=2").await.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_falls_behind_the_history_gets_a_410() {
    let cluster = Cluster::plain();
    let mut watch = cluster.watch("").await;
    for turn in 0..10_002 {
        let patch = json!({ "spec": { "a": turn } });
        if turn == 0 {
            cluster.server.create(KEX, object("n1")).expect("created");
        } else {
            cluster.server.merge(KEX, "ns1", "n1", patch).expect("merged");
        }
    }
    let event = watch.event().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.event().await, None);
}
