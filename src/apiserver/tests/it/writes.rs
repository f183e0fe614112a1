//! Creations, replacements and patches.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_has_the_first_version_and_keeps_its_uid() {
    let cluster = Cluster::plain();
    let (status, created) = cluster.post(OBJECTS, object_with("n1", "uid", json!("uid-n1"))).await;
    assert_eq!(status, 201);
    let mut expected = object_with("n1", "uid", json!("uid-n1"));
    expected["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(created, expected);
    assert_eq!(cluster.get(N1).await, (200, expected));
}

#[tokio::test(start_paused = true)]
async fn a_stamping_server_sets_its_own_fields() {
    let cluster = Cluster::stamping();
    tokio::time::advance(Duration::from_secs(5)).await;
    let (_, created) = cluster.post(OBJECTS, object_with("n1", "uid", json!("mine"))).await;
    let expected = json!({
        "name": "n1",
        "namespace": "ns1",
        "uid": "00000000-0000-4000-8000-000000000001",
        "creationTimestamp": "2026-01-01T00:00:05Z",
        "generation": 1,
        "resourceVersion": "1",
    });
    let mut metadata = created["metadata"].clone();
    metadata
        .as_object_mut()
        .expect("fields")
        .shift_remove("managedFields")
        .expect("one more field");
    assert_eq!(metadata, expected);
}

#[tokio::test(start_paused = true)]
async fn generated_names_differ() {
    let cluster = Cluster::plain();
    let mut body = object("");
    body["metadata"] = json!({ "generateName": "job-" });
    let (_, one) = cluster.post(OBJECTS, body.clone()).await;
    let (_, two) = cluster.post(OBJECTS, body).await;
    assert_eq!(one["metadata"]["name"], "job-00001");
    assert_eq!(two["metadata"]["name"], "job-00002");
    assert_eq!(one["metadata"]["namespace"], "ns1");
}

#[tokio::test(start_paused = true)]
async fn a_merge_patch_changes_and_removes() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let patch = json!({ "spec": { "a": null, "b": { "c": 2, "d": null } } });
    let (status, patched) = cluster.patch(N1, MERGE, patch).await;
    assert_eq!((status, version(&patched)), (200, "2"));
    assert_eq!(patched["spec"], json!({ "b": { "c": 2 } }));
}

#[tokio::test(start_paused = true)]
async fn a_patch_without_effect_makes_no_version_and_no_event() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let mut watch = cluster.watch("&resourceVersion=1").await;
    let (status, patched) =
        cluster.patch(N1, MERGE, json!({ "spec": { "a": 1, "z": null } })).await;
    assert_eq!((status, version(&patched)), (200, "1"));
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn empty_collections_of_the_metadata_are_not_stored() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let empty = json!({ "metadata": { "labels": {}, "annotations": {}, "finalizers": [] } });
    let (_, patched) = cluster.patch(N1, MERGE, empty).await;
    assert_eq!(version(&patched), "1");
    cluster.patch(N1, MERGE, json!({ "metadata": { "labels": { "a": "b" } } })).await;
    let (_, patched) =
        cluster.patch(N1, MERGE, json!({ "metadata": { "labels": { "a": null } } })).await;
    assert_eq!(version(&patched), "3");
    assert_eq!(patched["metadata"].get("labels"), None);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_is_applied_completely_or_not_at_all() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let guarded = |version: &str| {
        json!([
            { "op": "add", "path": "/metadata/finalizers", "value": ["a.dev/b"] },
            { "op": "test", "path": "/metadata/resourceVersion", "value": version },
        ])
    };
    let (status, refused) = cluster.patch(N1, JSON, guarded("7")).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")));
    assert_eq!(cluster.get(N1).await.1["metadata"].get("finalizers"), None);
    let (status, patched) = cluster.patch(N1, JSON, guarded("1")).await;
    assert_eq!((status, version(&patched)), (200, "2"));
    assert_eq!(patched["metadata"]["finalizers"], json!(["a.dev/b"]));
}

#[tokio::test(start_paused = true)]
async fn clients_cannot_change_the_fields_of_the_server() {
    let cluster = Cluster::stamping();
    let (_, created) = cluster.post(OBJECTS, object("n1")).await;
    let fields = json!({
        "creationTimestamp": null,
        "generation": 7,
        "uid": null,
    });
    let (status, patched) = cluster.patch(N1, MERGE, json!({ "metadata": fields })).await;
    assert_eq!((status, patched), (200, created));
}

#[tokio::test(start_paused = true)]
async fn a_status_subresource_is_the_only_way_to_the_status() {
    let cluster = Cluster::stamping();
    let status_url = format!("{N1}/status");
    let mut body = object("n1");
    body["status"] = json!({ "x": 1 });
    let (_, created) = cluster.post(OBJECTS, body).await;
    assert_eq!(created.get("status"), None);

    let both =
        json!({ "spec": { "a": 2 }, "status": { "x": 2 }, "metadata": { "labels": { "l": "1" } } });
    let (_, patched) = cluster.patch(&status_url, MERGE, both.clone()).await;
    assert_eq!((version(&patched), &patched["spec"]["a"]), ("2", &json!(1)));
    assert_eq!(patched["status"], json!({ "x": 2 }));
    assert_eq!(patched["metadata"].get("labels"), None);
    assert_eq!(patched["metadata"]["generation"], 1);

    let main = json!({ "spec": { "a": 2 }, "status": { "x": 3 } });
    let (_, patched) = cluster.patch(N1, MERGE, main).await;
    assert_eq!((version(&patched), &patched["spec"]["a"]), ("3", &json!(2)));
    assert_eq!(patched["status"], json!({ "x": 2 }));
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_status_subresource_there_is_no_endpoint_for_it() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let patch = json!({ "status": { "x": 1 } });
    assert_eq!(cluster.patch(&format!("{N1}/status"), MERGE, patch.clone()).await.0, 404);
    let (_, patched) = cluster.patch(N1, MERGE, patch).await;
    assert_eq!(patched["status"], json!({ "x": 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_replacement_needs_the_current_version() {
    let cluster = Cluster::plain();
    cluster.post(OBJECTS, object("n1")).await;
    let mut body = object_with("n1", "resourceVersion", json!("1"));
    body["spec"] = json!({ "b": 2 });
    let (status, replaced) = cluster.put(N1, body.clone()).await;
    assert_eq!((status, version(&replaced)), (200, "2"));
    assert_eq!(replaced["spec"], json!({ "b": 2 }));
    assert_eq!(cluster.put(N1, body).await.0, 409);
}
