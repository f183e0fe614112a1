//! The state that an operator of version 0.1.0 has left: objects in the middle of their handling, its `kopf.yaml`, its data file.
//!
//! `upgrade/objects.jsonl` is the data file of `kopf dev --data` of that version, which was killed while `half` and `deleted` were
//! waiting for a retry; only the date was changed. Its script and its `kopf.yaml` are next to it.

use std::fs;

use super::Desk;
use crate::e2e::{operator::file, until};

async fn continues_where_version_0_1_0_was_killed(script: &str) {
    let desk = Desk::new(&format!("upgrade-{script}"));
    for name in [script, "kopf.yaml", "objects.jsonl"] {
        let text = fs::read_to_string(file("tests/it/real_clock/dev/upgrade").join(name));
        desk.file(name, &text.expect("a recorded file"));
    }
    let operator = desk.start(&format!("{script} --data objects.jsonl")).await;
    operator.until_says("second of half in attempt 2").await;
    operator.until_says("gone deleted in attempt 2").await;
    let client = super::client(&desk.kubeconfig()).await;
    let patch = |path: &str, body: &str| {
        let request = http::Request::patch(path);
        let request = request.header("content-type", "application/merge-patch+json");
        request.body(body.as_bytes().to_vec()).expect("a request")
    };
    let examples = "/apis/kopf.dev/v1/namespaces/default/kopfexamples";
    for name in ["fine", "failed"] {
        let body = "{\"spec\":{\"size\":2}}";
        let edited =
            client.request::<serde_json::Value>(patch(&format!("{examples}/{name}"), body));
        let edited = edited.await.expect("an object");
        let finalizers = edited["metadata"]["finalizers"].to_string();
        assert_eq!(finalizers, "[\"my-operator.example.com/Finalizer\"]", "that of kopf.yaml");
        operator.until_says(&format!("changed {name}")).await;
    }
    let secret = "/api/v1/namespaces/default/secrets/password";
    let body = "{\"data\":{\"password\":\"c2VzYW1l\"}}";
    client.request::<serde_json::Value>(patch(secret, body)).await.expect("a secret");
    operator.until_says("rotated password").await;
    let get = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        client.request::<serde_json::Value>(request).await
    };
    until("the digest of the secret is stored", async || {
        let stored = get(secret).await.expect("a secret")["metadata"]["annotations"].to_string();
        let is_digest = stored.contains("kopf:hmac:") && !stored.contains("aHVudGVyMg");
        if is_digest { Ok(()) } else { Err(stored) }
    })
    .await;
    until("the deleted object is gone", async || match get(&format!("{examples}/deleted")).await {
        Ok(object) => Err(object),
        Err(_) => Ok(()),
    })
    .await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    // Handlers that had succeeded or failed permanently are not called again.
    for text in ["first of", "second of fine", "second of failed", "secret password"] {
        ended.assert_count(text, 0);
    }
}

#[tokio::test]
async fn objects_of_version_0_1_0_are_taken_over_by_lua() {
    continues_where_version_0_1_0_was_killed("handlers.lua").await;
}

#[tokio::test]
async fn objects_of_version_0_1_0_are_taken_over_by_rhai() {
    continues_where_version_0_1_0_was_killed("handlers.rhai").await;
}
