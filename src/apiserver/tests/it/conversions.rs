//! Conversion webhooks of CRDs, with the webhook in process.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kopf_apiserver::{ApiServer, Post, WebhookTarget};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{MERGE, client, send};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a CRD with two versions: `spec.address` of v1 is `spec.host` and `spec.port` of v2, the storage version.
fn definition() -> Value {
    let version = |name: &str, fields: Value| {
        json!({
            "name": name, "served": true, "storage": name == "v2",
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": fields },
            } } },
            "subresources": { "status": {} },
        })
    };
    let text = json!({ "type": "string" });
    let v2 = json!({ "host": text, "port": { "type": "integer", "default": 80 } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "links.kopf.dev" },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "links", "singular": "link", "kind": "Link", "listKind": "LinkList" },
            "versions": [version("v1", json!({ "address": text })), version("v2", v2)],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": { "url": "https://hooks.example/links" },
            } },
        },
    })
}

/// Converts an object, or returns the reason why it cannot be converted.
fn convert(object: &Value, wanted: &str) -> Result<Value, String> {
    let mut object = object.clone();
    let spec = object["spec"].clone();
    if spec["address"] == "impossible" {
        return Err("there is no such place".to_owned());
    }
    object["apiVersion"] = wanted.into();
    object["metadata"]["labels"]["converted"] = "yes".into();
    object["spec"] = if wanted.ends_with("v1") {
        let host = spec["host"].as_str().expect("a host");
        json!({ "address": format!("{host}:{}", spec["port"]), "unknown": true })
    } else {
        let (host, port) =
            spec["address"].as_str().and_then(|it| it.split_once(':')).expect("an address");
        json!({ "host": host, "port": port.parse::<u16>().expect("a port") })
    };
    Ok(object)
}

/// Returns a server with the CRD, and the numbers of objects in the reviews.
async fn cluster() -> (ApiServer, kube::Client, Arc<Mutex<Vec<usize>>>) {
    let reviews = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&reviews);
    let post = Post::new(move |target: WebhookTarget, body: Bytes| {
        assert_eq!(target.url, "https://hooks.example/links");
        let review: Value = serde_json::from_slice(&body).expect("a review");
        let request = &review["request"];
        let objects = request["objects"].as_array().expect("objects");
        log.lock().push(objects.len());
        let wanted = request["desiredAPIVersion"].as_str().expect("a version");
        let converted: Result<Vec<Value>, String> =
            objects.iter().map(|it| convert(it, wanted)).collect();
        let response = match converted {
            Ok(all) => json!({ "result": { "status": "Success" }, "convertedObjects": all }),
            Err(why) => json!({ "result": { "status": "Failure", "message": why } }),
        };
        let mut review = json!({ "response": response });
        review["response"]["uid"] = request["uid"].clone();
        async move { Ok(review.to_string().into()) }
    });
    let server = ApiServer::builder().cluster(true).webhooks(post).build();
    let client = client(&server);
    let (status, body) = request(&client, "POST", CRDS, &definition()).await;
    assert_eq!(status, 201, "{body}");
    (server, client, reviews)
}

async fn request(client: &kube::Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { MERGE } else { "application/json" };
    send(client, method, path, (kind, body.to_string())).await
}

async fn get(client: &kube::Client, path: &str) -> (u16, Value) {
    send(client, "GET", path, ("", String::new())).await
}

fn links(version: &str, rest: &str) -> String {
    format!("/apis/kopf.dev/{version}/namespaces/default/links{rest}")
}

fn link(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("kopf.dev/{version}"), "kind": "Link",
        "metadata": { "name": name }, "spec": spec,
    })
}

#[tokio::test(start_paused = true)]
async fn objects_are_stored_in_one_version_and_shown_in_each() {
    let (_server, client, reviews) = cluster().await;
    let body = link("v1", "a", &json!({ "address": "here:1" }));
    let (status, created) = request(&client, "POST", &links("v1", ""), &body).await;
    assert_eq!((status, &created["spec"]), (201, &json!({ "address": "here:1" })), "{created}");
    assert_eq!(created["apiVersion"], "kopf.dev/v1");
    let body = link("v2", "b", &json!({ "host": "there" }));
    let (_, created) = request(&client, "POST", &links("v2", ""), &body).await;
    assert_eq!(created["spec"], json!({ "host": "there", "port": 80 }));
    reviews.lock().clear();
    let (_, list) = get(&client, &links("v2", "")).await;
    assert_eq!(list["items"][0]["spec"], json!({ "host": "here", "port": 1 }));
    assert!(reviews.lock().is_empty(), "both are stored like this");
    let (_, list) = get(&client, &links("v1", "")).await;
    let item = |it: usize| list["items"][it].clone();
    assert_eq!(
        (&item(0)["spec"]["address"], &item(1)["spec"]["address"]),
        (&json!("here:1"), &json!("there:80"))
    );
    assert_eq!(
        (&item(1)["apiVersion"], &item(1)["spec"]["unknown"]),
        (&json!("kopf.dev/v1"), &Value::Null)
    );
    assert_eq!(item(1)["metadata"]["labels"]["converted"], "yes");
    assert_eq!(*reviews.lock(), [2], "one review for all");
}

#[tokio::test(start_paused = true)]
async fn writes_through_any_version_change_the_stored_object() {
    let (server, client, _) = cluster().await;
    let body = link("v2", "a", &json!({ "host": "here", "port": 1 }));
    let (_, created) = request(&client, "POST", &links("v2", ""), &body).await;
    let change = json!({ "spec": { "address": "there:2" } });
    let (status, changed) = request(&client, "PATCH", &links("v1", "/a"), &change).await;
    assert_eq!((status, &changed["spec"]), (200, &json!({ "address": "there:2" })), "{changed}");
    let stored = server.get("links.kopf.dev", "default", "a").expect("it is stored");
    assert_eq!(
        (&stored["apiVersion"], &stored["spec"]),
        (&json!("kopf.dev/v2"), &json!({ "host": "there", "port": 2 }))
    );
    assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
    let version = stored["metadata"]["resourceVersion"].clone();
    let (_, same) = request(&client, "PATCH", &links("v1", "/a"), &change).await;
    assert_eq!(same["metadata"]["resourceVersion"], version, "nothing has changed");
    let status = json!({ "status": { "ready": true } });
    let (code, _) = request(&client, "PATCH", &links("v1", "/a/status"), &status).await;
    assert_eq!(code, 200);
    let finalizers = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    request(&client, "PATCH", &links("v2", "/a"), &finalizers).await;
    let (code, deleted) = send(&client, "DELETE", &links("v1", "/a"), ("", String::new())).await;
    assert_eq!((code, &deleted["spec"]), (200, &json!({ "address": "there:2" })), "{deleted}");
    let stored = server.get("links.kopf.dev", "default", "a").expect("it is held");
    assert_eq!(stored["spec"], json!({ "host": "there", "port": 2 }));
}

#[tokio::test(start_paused = true)]
async fn watches_show_objects_in_their_version() {
    let (_server, client, reviews) = cluster().await;
    for name in ["a", "b"] {
        let body = link("v2", name, &json!({ "host": name, "port": 1 }));
        request(&client, "POST", &links("v2", ""), &body).await;
    }
    let uri = links("v1", "?watch=true");
    let request_of = http::Request::get(uri).body(Body::empty()).expect("a request");
    let mut lines = client.send(request_of).await.expect("a watch").into_body();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let frame = lines.frame().await.expect("a line").expect("a frame");
        let event: Value = serde_json::from_slice(&frame.into_data().expect("data")).expect("JSON");
        seen.push(event["object"]["spec"]["address"].clone());
    }
    assert_eq!(*reviews.lock(), [2], "what exists is converted at once");
    request(&client, "PATCH", &links("v2", "/b"), &json!({ "spec": { "port": 7 } })).await;
    let frame = lines.frame().await.expect("a line").expect("a frame");
    let event: Value = serde_json::from_slice(&frame.into_data().expect("data")).expect("JSON");
    seen.push(event["object"]["spec"]["address"].clone());
    assert_eq!(seen, ["a:1", "b:1", "b:7"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_conversion_fails_the_request() {
    let (_server, client, _) = cluster().await;
    let body = link("v1", "a", &json!({ "address": "impossible" }));
    let (status, refused) = request(&client, "POST", &links("v1", ""), &body).await;
    let text = "conversion webhook for kopf.dev/v1, Kind=Link failed: there is no such place";
    assert_eq!((status, &refused["message"]), (500, &json!(text)));
    let (status, _) = get(&client, &links("v2", "/a")).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn snapshots_keep_the_version_that_objects_are_stored_in() {
    let (server, client, _) = cluster().await;
    let body = link("v2", "a", &json!({ "host": "here", "port": 1 }));
    request(&client, "POST", &links("v2", ""), &body).await;
    let file = std::env::temp_dir().join(format!("kopf-conversions-{}", std::process::id()));
    server.export().write(&file).expect("it is written");
    let snapshot =
        kopf_apiserver::snapshot::Snapshot::read(&file).expect("it is whole").expect("it is there");
    std::fs::remove_file(&file).expect("it is there");
    server.roll_back(snapshot);
    let (_, shown) = get(&client, &links("v1", "/a")).await;
    assert_eq!(shown["spec"], json!({ "address": "here:1" }), "{shown}");
}
