//! Admission webhooks in process.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use kopf_apiserver::{Post, WebhookTarget};
use parking_lot::Mutex;

use super::*;

/// A webhook: from the request of a review to the response, without its uid.
type ReviewHandler = fn(&Value) -> Value;

/// Returns a server with webhooks, and the reviews that they have received.
fn cluster(answer: ReviewHandler) -> (Cluster, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let post = Post::new(move |target: WebhookTarget, body: Bytes| {
        let review: Value = serde_json::from_slice(&body).expect("a review");
        let mut request = review["request"].clone();
        request["url"] = target.url.into();
        let mut response = answer(&request);
        log.lock().push(request.clone());
        async move {
            if response["down"] == true {
                return Err("connection refused".to_owned());
            }
            response["uid"] = request["uid"].clone();
            Ok(json!({ "response": response }).to_string().into())
        }
    });
    let configurations = |plural: &str, kind: &str| ResourceDef {
        namespaced: false,
        ..ResourceDef::new("admissionregistration.k8s.io", "v1", plural, kind)
    };
    let builder = ApiServer::builder()
        .resource(configurations(
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        ))
        .resource(configurations("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"))
        .webhooks(post);
    (Cluster::new(builder, kex()), asked)
}

impl Cluster {
    /// Registers a webhook for creations, changes and deletions of the examples, with these differences.
    fn hook(&self, kind: &str, name: &str, differences: &Value) {
        let mut hook = json!({
            "name": name,
            "clientConfig": { "url": format!("https://hooks.example/{name}") },
            "rules": [{
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "apiGroups": ["kopf.dev"], "apiVersions": ["v1"], "resources": ["kopfexamples"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        json_patch::merge(&mut hook, differences);
        let configuration = json!({ "metadata": { "name": name }, "webhooks": [hook] });
        let resource = format!("{kind}webhookconfigurations.admissionregistration.k8s.io");
        self.server.create(&resource, configuration).expect("it is new");
    }
}

fn patch(operations: &Value) -> Value {
    let patch = BASE64_STANDARD.encode(operations.to_string());
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
}

#[tokio::test(start_paused = true)]
async fn a_mutating_webhook_changes_what_is_written_and_later_ones_see_it() {
    let (cluster, asked) = cluster(|request| match request["url"].as_str() {
        Some(url) if url.starts_with("https://hooks.example/first?") => {
            patch(&json!([{ "op": "add", "path": "/spec/b", "value": 2 }]))
        }
        _ => patch(
            &json!([{ "op": "add", "path": "/spec/c", "value": request["object"]["spec"]["b"] }]),
        ),
    });
    cluster.hook("mutating", "second", &json!({}));
    cluster.hook("mutating", "first", &json!({ "reinvocationPolicy": "IfNeeded" }));
    let (status, created) = cluster.post(OBJECTS, object("n1")).await;
    assert_eq!((status, &created["spec"]), (201, &json!({ "a": 1, "b": 2, "c": 2 })));
    let asked: Vec<_> = asked.lock().iter().map(|it| it["url"].clone()).collect();
    let name = |it: &str| json!(format!("https://hooks.example/{it}?timeout=10s"));
    assert_eq!(asked, [name("first"), name("second"), name("first")]);
}

#[tokio::test(start_paused = true)]
async fn a_validating_webhook_sees_the_whole_request_and_refuses_with_its_message() {
    let (cluster, asked) = cluster(|request| match request["operation"].as_str() {
        Some("DELETE") => json!({ "allowed": false }),
        Some("UPDATE") => json!({
            "allowed": false,
            "status": { "code": 418, "message": "no coffee", "reason": "Teapot" },
        }),
        _ => json!({ "allowed": true, "warnings": ["it is old"] }),
    });
    cluster.hook("validating", "tea", &json!({}));
    assert_eq!(cluster.post(OBJECTS, object("n1")).await.0, 201);
    let (status, refusal) = cluster.patch(N1, MERGE, json!({ "spec": { "a": 2 } })).await;
    assert_eq!((status, &refusal["reason"]), (418, &json!("Teapot")));
    assert_eq!(refusal["message"], r#"admission webhook "tea" denied the request: no coffee"#);
    let (status, refusal) = cluster.delete(N1).await;
    assert_eq!(status, 400);
    let words = r#"admission webhook "tea" denied the request without explanation"#;
    assert_eq!(refusal["message"], words);
    assert_eq!(cluster.get(N1).await.1["spec"], json!({ "a": 1 }));

    let asked = asked.lock();
    let update = &asked[1];
    assert_eq!(
        update["kind"],
        json!({ "group": "kopf.dev", "version": "v1", "kind": "KopfExample" })
    );
    assert_eq!([&update["name"], &update["namespace"]], ["n1", "ns1"]);
    assert_eq!([&update["object"]["spec"]["a"], &update["oldObject"]["spec"]["a"]], [2, 1]);
    assert_eq!(
        [&asked[2]["object"], &asked[2]["oldObject"]["spec"]["a"]],
        [&Value::Null, &json!(1)]
    );
}

#[tokio::test(start_paused = true)]
async fn warnings_are_headers() {
    let (cluster, _) = cluster(|_| json!({ "allowed": true, "warnings": ["it is old"] }));
    cluster.hook("validating", "w", &json!({}));
    let body = Body::from(object("n1").to_string().into_bytes());
    let request = Request::post(OBJECTS).body(body).expect("a valid request");
    let response = cluster.client.send(request).await.expect("the server answers");
    assert_eq!(response.headers()["warning"], r#"299 - "it is old""#);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_webhook_blocks_writes_unless_failures_are_ignored() {
    let (cluster, _) = cluster(|_| json!({ "down": true }));
    cluster.hook("validating", "ignored", &json!({ "failurePolicy": "Ignore" }));
    assert_eq!(cluster.post(OBJECTS, object("n1")).await.0, 201);
    cluster.hook("mutating", "needed", &json!({ "failurePolicy": "Fail" }));
    let (status, refusal) = cluster.post(OBJECTS, object("n2")).await;
    let words = "Internal error occurred: failed calling webhook \"needed\": failed to call webhook: \
                 connection refused";
    assert_eq!((status, &refusal["message"]), (500, &json!(words)));
    assert_eq!(cluster.get(&format!("{OBJECTS}/n2")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_called_only_for_selected_objects() {
    for (differences, is_asked) in [
        (json!({}), true),
        (json!({ "rules": [] }), false),
        (json!({ "objectSelector": { "matchLabels": { "a": "x" } } }), true),
        (json!({ "objectSelector": { "matchLabels": { "a": "y" } } }), false),
        (json!({ "namespaceSelector": { "matchLabels": { "team": "us" } } }), true),
        (json!({ "namespaceSelector": { "matchLabels": { "team": "them" } } }), false),
        (rule(&json!({ "operations": ["*"], "resources": ["*/*"] })), true),
        (rule(&json!({ "resources": ["kopfexamples/status"] })), false),
        (rule(&json!({ "operations": ["UPDATE"] })), false),
        (rule(&json!({ "apiGroups": ["*"], "apiVersions": ["*"] })), true),
        (rule(&json!({ "apiVersions": ["v2"] })), false),
        (rule(&json!({ "scope": "Cluster" })), false),
    ] {
        let (cluster, asked) = cluster(|_| json!({ "allowed": true }));
        let namespace = json!({ "metadata": { "name": "ns1", "labels": { "team": "us" } } });
        cluster.server.create("namespaces", namespace).expect("it is new");
        cluster.hook("validating", "one", &differences);
        cluster.post(OBJECTS, object_with("n1", "labels", json!({ "a": "x" }))).await;
        assert_eq!(!asked.lock().is_empty(), is_asked, "{differences}");
    }
}

/// Returns a webhook whose only rule has these differences.
fn rule(differences: &Value) -> Value {
    let mut rule = json!({
        "operations": ["CREATE"],
        "apiGroups": ["kopf.dev"], "apiVersions": ["v1"], "resources": ["kopfexamples"],
    });
    json_patch::merge(&mut rule, differences);
    json!({ "rules": [rule] })
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_a_webhook_must_match_the_schema() {
    let (cluster, _) = cluster(|_| {
        patch(&json!([
            { "op": "add", "path": "/spec/known", "value": {} },
            { "op": "add", "path": "/spec/unknown", "value": 1 },
        ]))
    });
    let known =
        json!({ "type": "object", "properties": { "x": { "type": "integer", "default": 7 } } });
    let spec = json!({ "type": "object", "properties": { "known": known } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let definition = json!({
        "metadata": { "name": "strictones.kopf.dev" },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "strictones", "singular": "strictone", "kind": "StrictOne", "listKind": "StrictOneList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    cluster.server.create(definitions, definition).expect("it is new");
    cluster.hook("mutating", "adds", &rule(&json!({ "operations": ["*"], "resources": ["*"] })));
    let path = "/apis/kopf.dev/v1/namespaces/ns1/strictones";
    let body = json!({ "apiVersion": "kopf.dev/v1", "kind": "StrictOne", "metadata": { "name": "a" }, "spec": {} });
    let (status, created) = cluster.post(path, body).await;
    assert_eq!((status, &created["spec"]), (201, &json!({ "known": { "x": 7 } })));
    let patch = json!({ "spec": { "known": null } });
    let (status, patched) = cluster.patch(&format!("{path}/a"), MERGE, patch).await;
    assert_eq!((status, &patched["spec"]), (200, &json!({ "known": { "x": 7 } })));
}
