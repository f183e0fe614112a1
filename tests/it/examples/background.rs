//! The examples of daemons, timers and indexes.

use serde_json::{Value, json};

use super::{EXAMPLES, OBJECT, Place};
use crate::e2e::namespace::annotations;

pub(super) async fn daemons<P: Place>(run: P) {
    run.create_object().await;
    run.until_prints("=> Ping from a sync daemon: field='value', retry=3").await;
    run.until_prints("=> Ping from an async daemon: field='value'").await;
    for daemon in ["background_sync", "background_async"] {
        run.until_says_times(&format!("Daemon '{daemon}' is invoked."), 4).await;
    }
    let failed = |it: &Value| it["status"]["message"] == "Failed 3 times.";
    let object = run.until_object("the daemons have failed", failed).await;
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    assert_eq!(annotations(&object), [], "{object:#}");
    // They see the current object, not the one at their start.
    run.patch_object(&json!({"spec": {"field": "changed"}})).await;
    run.until_prints("=> Ping from a sync daemon: field='changed', retry=3").await;
    run.until_prints("=> Ping from an async daemon: field='changed'").await;
    run.delete_object().await;
    run.until_gone(EXAMPLES, OBJECT).await;
    let prefix = run.prefix();
    let ended = run.end().await;
    for (line, times) in [
        ("Daemon 'background_sync' failed temporarily: Simulated failure.", 3),
        ("Daemon 'background_async' failed temporarily: Simulated failure.", 3),
        ("Daemon 'background_sync' succeeded.", 1),
        ("Daemon 'background_sync' has exited on request and will not be retried or restarted.", 1),
        ("Daemon 'background_async' is signalled to exit gracefully.", 1),
        ("Daemon 'background_async' is signalled to exit by force.", 1),
        ("Daemon 'background_async' is cancelled. Will escalate.", 1),
        ("Daemon 'background_async' did not exit in time.", 0),
        ("Adding the finalizer, thus preventing the actual deletion.", 1),
        ("Deleted, really deleted", 0),
    ] {
        ended.assert_count(&format!("{prefix}{line}"), times);
    }
    // Possibly twice: the touch and the release are two requests, and the event of the first may come between.
    let released = format!("{prefix}Removing the finalizer, thus allowing the actual deletion.");
    assert!(ended.count(&released) > 0);
}

pub(super) async fn timers<P: Place>(run: P) {
    let sync = "Timer 'every_few_seconds_sync' succeeded.";
    run.create_object().await;
    run.until_says_times(sync, 4).await;
    run.until_says_times("Timer 'every_few_seconds_async' succeeded.", 1).await;
    let object = run.object().await;
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    run.patch_object(&json!({"spec": {"field": "changed"}})).await;
    run.until_says("Ping from a sync timer: field='changed'").await;
    run.until_says("Ping from an async timer: field='changed'").await;
    run.delete_object().await;
    run.until_gone(EXAMPLES, OBJECT).await;
    let prefix = run.prefix();
    let ended = run.end().await;
    // The timer that waits for five seconds of peace calls three times before that of ten.
    let pings =
        |which: &str| ended.seconds_of(&format!("{prefix}Ping from {which} timer: field='value'"));
    let (first, second) = (pings("a sync"), pings("an async"));
    let apart = second[0] - first[0];
    assert!((4.5..7.0).contains(&apart), "the second timer starts {apart} s after the first");
    for pair in first.windows(2) {
        let pause = pair[1] - pair[0];
        assert!((1.9..3.5).contains(&pause), "{pause} s between two calls");
    }
    assert!(
        ended.count(&format!("{prefix}Removing the finalizer, thus allowing the actual deletion."))
            > 0
    );
    ended.assert_count(&format!("{prefix}Timer 'every_few_seconds_sync' failed"), 0);
}

pub(super) async fn indexing<P: Place>(run: P) {
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": name } },
            "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
        })
    };
    for name in ["first", "second"] {
        run.create(&pod(name)).await;
    }
    // On the embedded server, a simulated kubelet does so.
    if P::IS_REAL {
        run.patch("pods", "first", &json!({ "status": { "phase": "Running" } })).await;
        run.create_object().await;
    } else {
        run.until("pods", "first", "it runs", |it| it["status"]["phase"] == "Running").await;
        run.until("pods", "second", "it runs", |it| it["status"]["phase"] == "Running").await;
        run.create_object().await;
    }
    let first = format!("{}::first", run.namespace());
    let second = format!("{}::second", run.namespace());
    let expected = if P::IS_REAL { json!([first]) } else { json!([first, second]) };
    // Maps of Lua have no order.
    let running = |object: &Value| {
        let mut names = object["status"]["running-pods"].as_array().cloned().unwrap_or_default();
        names.sort_by_key(Value::to_string);
        expected == Value::Array(names)
    };
    run.until_object("the running pods are known", running).await;
    run.delete("pods", "first").await;
    let rest = if P::IS_REAL { json!([]) } else { json!([second]) };
    let gone = |object: &Value| object["status"]["running-pods"] == rest;
    run.until_object("the pod is gone", gone).await;
    run.until_says("Timer 'intervalled' succeeded.").await;
    let ended = run.end().await;
    ended.assert_count("failed", 0);
    if P::IS_REAL {
        assert!(ended.count(r#""app=second":["second"]"#) > 0, "the timer prints the index");
    }
}
