//! Lists, their selectors and their pages.

use super::*;

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    items.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_has_the_version_of_the_server() {
    let cluster = Cluster::plain();
    let empty = json!({
        "kind": "KopfExampleList",
        "apiVersion": "kopf.dev/v1",
        "metadata": { "resourceVersion": "0", "continue": "" },
        "items": [],
    });
    assert_eq!(cluster.get(OBJECTS).await, (200, empty));
    cluster.post(OBJECTS, object("n1")).await;
    let (_, other) = cluster
        .post("/api/v1/namespaces", json!({ "kind": "Namespace", "metadata": { "name": "x" } }))
        .await;
    let (_, list) = cluster.get(OBJECTS).await;
    assert_eq!((version(&list), names(&list)), (version(&other), vec!["n1"]));
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_separate_and_the_cluster_has_all() {
    let cluster = Cluster::plain();
    for namespace in ["ns2", "ns1"] {
        let mut body = object("n1");
        body["metadata"]["namespace"] = json!(namespace);
        cluster.server.create(KEX, body).expect("created");
    }
    assert_eq!(names(&cluster.get(OBJECTS).await.1), ["n1"]);
    let (_, all) = cluster.get("/apis/kopf.dev/v1/kopfexamples").await;
    let namespaces: Vec<_> = all["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|it| &it["metadata"]["namespace"])
        .collect();
    assert_eq!(namespaces, ["ns1", "ns2"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_narrow_a_list() {
    let cluster = Cluster::plain();
    for (name, labels) in [("n1", json!({ "a": "x" })), ("n2", json!({ "a": "y", "b": "" }))] {
        cluster.post(OBJECTS, object_with(name, "labels", labels)).await;
    }
    cluster.post(OBJECTS, object("n3")).await;
    for (query, expected) in [
        ("labelSelector=a", "n1 n2"),
        ("labelSelector=!a", "n3"),
        ("labelSelector=a%3Dx", "n1"),
        ("labelSelector=a==x", "n1"),
        ("labelSelector=a!%3Dx", "n2 n3"),
        ("labelSelector=a+in+(x,y),b", "n2"),
        ("labelSelector=a%20notin%20(x)", "n2 n3"),
        ("fieldSelector=metadata.name%3Dn2", "n2"),
        ("fieldSelector=metadata.name!=n2,metadata.namespace=ns1", "n1 n3"),
    ] {
        let (_, list) = cluster.get(&format!("{OBJECTS}?{query}")).await;
        assert_eq!(names(&list).join(" "), expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_have_one_version() {
    let cluster = Cluster::plain();
    for name in ["n1", "n2", "n3"] {
        cluster.post(OBJECTS, object(name)).await;
    }
    let (_, first) = cluster.get(&format!("{OBJECTS}?limit=2")).await;
    assert_eq!(names(&first), ["n1", "n2"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let rest = format!("{OBJECTS}?limit=2&continue={}", token.replace('/', "%2F"));
    let (_, last) = cluster.get(&rest).await;
    assert_eq!((names(&last), version(&last)), (vec!["n3"], "3"));
    assert_eq!(last["metadata"]["continue"], "");

    cluster.server.compact();
    let (status, expired) = cluster.get(&rest).await;
    assert_eq!((status, &expired["reason"]), (410, &json!("Expired")));
}

#[tokio::test(start_paused = true)]
async fn items_of_native_lists_do_not_repeat_their_kind() {
    let cluster = Cluster::plain();
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
    cluster.post("/api/v1/namespaces/ns1/configmaps", body).await;
    let (_, list) = cluster.get("/api/v1/configmaps").await;
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0].get("kind"), None);
}

#[tokio::test(start_paused = true)]
async fn invalid_label_selectors_are_bad_requests() {
    let cluster = Cluster::plain();
    for query in ["labelSelector=a%20b", "watch=1&labelSelector=%3Db", "labelSelector=a+in+x"] {
        let (status, refused) = cluster.get(&format!("{OBJECTS}?{query}")).await;
        assert_eq!((status, &refused["reason"]), (400, &json!("BadRequest")), "{query}");
    }
}
