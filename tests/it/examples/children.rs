//! The examples whose handlers create other objects, or handle those of Kubernetes.

use serde_json::{Value, json};

use super::{EXAMPLES, OBJECT, Place};
use crate::e2e::namespace::is_settled;

/// Waits until the namespace has `count` pods; returns them.
async fn until_pods<P: Place>(run: &P, count: usize) -> Vec<Value> {
    let mut pods = Vec::new();
    for _ in 0..run.patience() {
        pods = run.list("pods").await;
        if pods.len() == count {
            return pods;
        }
        run.pause().await;
    }
    panic!("{count} pods are expected, not {pods:#?}");
}

pub(super) async fn children<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let parent = run.until_object("the creation is handled", is_settled).await;
    let pods = until_pods(&run, 1).await;
    let meta = &pods[0]["metadata"];
    assert_eq!(parent["status"]["create_fn"], json!({ "children": [meta["uid"]] }));
    let name = meta["name"].as_str().expect("a name");
    assert!(name.starts_with("kopf-example-1-"), "{name}");
    assert_eq!(meta["labels"]["somelabel"], "somevalue");
    let owners = meta["ownerReferences"].as_array().expect("owners");
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0]["uid"], parent["metadata"]["uid"]);
    assert_eq!(owners[0]["controller"], true);
    assert_eq!(owners[0]["blockOwnerDeletion"], true);
    // Later changes create no other one.
    run.patch_object(&json!({ "spec": { "field": "changed" } })).await;
    run.until_object("the change is seen", |it| it["spec"]["field"] == "changed").await;
    until_pods(&run, 1).await;
    run.delete_object().await;
    run.until_gone(EXAMPLES, OBJECT).await;
    if !P::IS_REAL {
        until_pods(&run, 0).await;
    }
    run.end().await.assert_count("Handler 'create_fn' succeeded.", 1);
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "busybox", "command": ["sleep", "3600"] }],
        },
    })
}

pub(super) async fn builtins<P: Place>(run: P) {
    run.create(&pod("doomed")).await;
    run.create(&pod("lucky")).await;
    for name in ["doomed", "lucky"] {
        let said = format!("[{}/{name}] === Pod killing happens in 30s.", run.namespace());
        run.until_says(&said).await;
        let is_held = |it: &Value| {
            it["metadata"]["finalizers"] == json!(["kopf.zalando.org/KopfFinalizerMarker"])
        };
        run.until("pods", name, "it is held", is_held).await;
    }
    run.delete("pods", "lucky").await;
    run.until_gone("pods", "lucky").await;
    run.until_says(&format!("[{}/lucky] === Pod killing is cancelled!", run.namespace())).await;
    run.until_says(&format!("[{}/doomed] === Pod killing happens NOW!", run.namespace())).await;
    run.until_gone("pods", "doomed").await;
    let ended = run.end().await;
    ended.assert_count("=== Pod killing happens NOW!", 1);
    let (told, killed) = (
        ended.seconds_of("/doomed] === Pod killing happens in 30s.")[0],
        ended.seconds_of("/doomed] === Pod killing happens NOW!")[0],
    );
    let after = (killed - told).rem_euclid(86400.0);
    assert!((29.9..45.0).contains(&after), "it is killed after {after} s");
}

pub(super) async fn all_at_once<P: Place>(run: P) {
    run.until_says("Activity 'startup_fn_retried' succeeded.").await;
    run.create_object().await;
    run.until_says("Creation is processed: 3 succeeded; 0 failed.").await;
    let object = run.until_object("the creation is handled", is_settled).await;
    assert_eq!(object["status"]["create_1"], json!({ "job1-status": 100 }));
    assert_eq!(object["status"]["create_2"], json!({ "job2-status": 100 }));
    assert_eq!(object["status"].as_object().map(serde_json::Map::len), Some(2), "{object:#}");
    let pods = until_pods(&run, 1).await;
    assert_eq!(pods[0]["metadata"]["name"], OBJECT);
    assert_eq!(pods[0]["metadata"]["labels"]["application"], "kopf-example-10");
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["uid"], object["metadata"]["uid"]);
    run.until_says(&format!("{}This pod is special for us.", run.prefix())).await;
    run.patch_object(&json!({ "spec": { "lst": [1, 2] } })).await;
    run.until_says("Updating is processed: 2 succeeded; 0 failed.").await;
    run.until_says("The list is now [1,2], and was").await;
    run.until_object("the update is handled", is_settled).await;
    run.delete_object().await;
    run.until_gone(EXAMPLES, OBJECT).await;
    let events = run.list("events").await;
    let about = events.iter().filter(|it| it["involvedObject"]["kind"] == "KopfExample");
    let mut told: Vec<_> = about.map(|it| (it["type"].clone(), it["reason"].clone())).collect();
    told.sort_by_key(|(kind, _)| kind.to_string());
    let expected = [(json!("Normal"), json!("AnyReason")), (json!("Warning"), json!("SomeReason"))];
    assert_eq!(told, expected);
    let prefix = run.prefix();
    let ended = run.end().await;
    for handler in ["create_1", "create_2", "create_pod", "delete"] {
        ended.assert_count(&format!("{prefix}Handler '{handler}' succeeded."), 1);
    }
    for activity in ["startup_fn_simple", "startup_fn_retried", "cleanup_fn"] {
        ended.assert_count(&format!("Activity '{activity}' succeeded."), 1);
    }
    let failed = "Handler 'create_2' failed with an exception and will try again in 1";
    ended.assert_count(&format!("{prefix}{failed}"), 1);
}
