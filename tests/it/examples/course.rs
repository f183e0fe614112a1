//! The examples of handlers of changes and events.

use serde_json::{Value, json};

use super::{EXAMPLES, OBJECT, Place};
use crate::e2e::namespace::{annotations, is_settled};

pub(super) async fn minimal<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let object = run.until_object("the creation is handled", is_settled).await;
    assert_eq!(object["status"]["create_fn"], json!({"message": "hello world"}));
    let essence = concat!(
        r#"{"spec":{"duration":"1m","field":"value","items":["item1","item2"]},"#,
        r#""metadata":{"labels":{"somelabel":"somevalue"},"annotations":{"someannotation":"somevalue"}}}"#,
        "\n"
    );
    assert_eq!(annotations(&object).len(), 1, "{object:#}");
    let stored = annotations(&object).remove(0);
    assert_eq!(stored.0, "last-handled-configuration");
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("an essence is JSON");
    assert_eq!(parse(&stored.1), parse(essence));
    assert!(stored.1.ends_with('\n'));
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
    run.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.end().await;
    P::assert_printed(&ended, "And here we are! Creating: {", 1);
    ended.assert_count(&format!("{prefix}Creation is in progress:"), 1);
    ended.assert_count("'create_fn' succeeded", 1);
    ended.assert_count("'create_fn' failed", 0);
}

pub(super) async fn exceptions<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 1 succeeded; 3 failed.").await;
    run.until_object("the records are removed", is_settled).await;
    run.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.end().await;
    let lines = [
        ("'instant_failure_with_only_a_message' failed permanently: Fail once and for all.", 1),
        (
            "'eventual_success_with_a_few_messages' failed temporarily: Expected recoverable error.",
            3,
        ),
        ("'eventual_success_with_a_few_messages' succeeded", 1),
        ("'eventual_failure_with_tracebacks' failed with an exception and will try again in 1", 2),
        (
            "'eventual_failure_with_tracebacks' failed with an exception and will stop now (it would exceed 3 retries on the next attempt): An error that is supposed to be recoverable.",
            1,
        ),
        (
            "'instant_failure_with_traceback' failed with an exception and will stop now: An error that is supposed to be recoverable.",
            1,
        ),
    ];
    // With the prefix of the object: the records in the logged patches contain some of these strings, too.
    for (text, times) in lines {
        ended.assert_count(&format!("{prefix}Handler {text}"), times);
    }
}

pub(super) async fn handlers<P: Place>(mut run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 3 succeeded; 0 failed.").await;
    let object = run.until_object("it is handled", is_settled).await;
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    run.patch_object(&json!({"spec": {"field": "changed"}})).await;
    run.until_says("Updating is processed: 2 succeeded; 0 failed.").await;
    run.until_object("the update is handled", is_settled).await;

    let first = run.restart().await;
    first.assert_code(0);
    for line in [
        "CREATED 1st",
        "CREATED 2nd",
        "FIELD CHANGED: None -> value",
        "UPDATED",
        "FIELD CHANGED: value -> changed",
    ] {
        P::assert_printed(&first, line, 1);
    }
    first.assert_count("RESUMED", 0);

    run.until_says("Resuming is processed: 2 succeeded; 0 failed.").await;
    run.delete_object().await;
    run.until_says("Deletion is processed: 2 succeeded; 0 failed.").await;
    run.until_gone(EXAMPLES, OBJECT).await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let second = run.end().await;
    for line in ["RESUMED 1st", "RESUMED 2nd", "DELETED 1st", "DELETED 2nd"] {
        P::assert_printed(&second, line, 1);
    }
    // Once per handler, as each has a separate cycle.
    second.assert_count(&format!("{prefix}Deletion is in progress:"), 2);
    first.assert_count(&format!("{prefix}Adding the finalizer"), 1);
}

pub(super) async fn raw_events<P: Place>(run: P) {
    run.until_says("Starting the watch-stream for kopfexamples").await;
    run.create_object().await;
    run.until_says_times("'normal_event_fn' succeeded", 1).await;
    let object = run.object().await;
    assert_eq!(annotations(&object), [], "{object:#}");
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
    run.delete_object().await;
    run.until_says_times("'normal_event_fn' succeeded", 2).await;
    let ended = run.end().await;
    ended.assert_count(
        "'event_fn_with_error' failed with an exception and will ignore it: Oops!",
        2,
    );
    P::assert_printed(&ended, "Event received: {", 2);
    P::assert_printed(&ended, "DELETED", 1);
    ended.assert_count("atching the", 0); // "Patching the …", "Merge-patching the …"
}

pub(super) async fn filtering<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 10 succeeded; 0 failed.").await;
    run.until_object("the creation is handled", is_settled).await;
    run.patch_object(&json!({"spec": {"field": "changed"}})).await;
    run.until_says("Updating is processed: 1 succeeded; 0 failed.").await;
    run.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.end().await;
    for line in [
        "Label is matching.",
        "Label is present.",
        "Label is absent.",
        "Label callback matching.",
        "Annotation is matching.",
        "Annotation is present.",
        "Annotation is absent.",
        "Filter satisfied.",
        "Field value is satisfied.",
        "Field presence is satisfied.",
        "Field change is satisfied.",
        "Daemon 'daemon_with_field/spec.field' succeeded.",
        "Daemon 'daemon_with_field/spec.field' has exited on request and will not be retried or restarted.",
        "Removing the finalizer, as there are no handlers requiring it.",
    ] {
        ended.assert_count(&format!("{prefix}{line}"), 1);
    }
    assert!(ended.count(&format!("{prefix}Field daemon is satisfied.")) > 0);
    for line in ["mismatch", "not satisfied"] {
        ended.assert_count(line, 0);
    }
}

pub(super) async fn hooks<P: Place>(run: P) {
    run.until_says("Activity 'startup_fn_retried' succeeded.").await;
    run.until_says("Starting the watch-stream for pods").await;
    let ended = run.end().await;
    for line in [
        "Activity 'startup_fn_simple' succeeded.",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 3s",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 2s",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 1s",
        "Starting retried...",
        "Activity 'startup_fn_retried' succeeded.",
        "Cleaning up...",
        "All pod-tasks are requested to stop...",
        "Activity 'cleanup_fn' succeeded.",
    ] {
        ended.assert_count(line, 1);
    }
    // The embedded server accepts all clients, and calls no login handlers.
    P::assert_printed(&ended, "Logging in in 2s...", 1);
    P::assert_printed(&ended, "Activity 'login_fn' succeeded.", 1);
}

pub(super) async fn subhandlers<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let object = run.until_object("the records are removed", is_settled).await;
    assert_eq!(annotations(&object).len(), 1, "{object:#}");
    run.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.end().await;
    for item in ["item1", "item2"] {
        P::assert_printed(&ended, &format!("=== Handling creation for {item}. ==="), 1);
        ended.assert_count(&format!("{prefix}Handler 'create_fn/{item}' is invoked."), 1);
        ended.assert_count(&format!("{prefix}Handler 'create_fn/{item}' succeeded."), 1);
    }
    ended.assert_count(&format!("{prefix}Handler 'create_fn' is invoked."), 2);
    let unfinished = "Handler 'create_fn' has unfinished sub-handlers. Will retry soon.";
    ended.assert_count(&format!("{prefix}{unfinished}"), 1);
    ended.assert_count(&format!("{prefix}Handler 'create_fn' succeeded."), 1);
}

/// Checks the example without another operator: `tests/it/e2e/peering.rs` has the rest.
pub(super) async fn alone<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Handler 'create_fn' succeeded.").await;
    run.end().await;
}

pub(super) async fn events<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let expected = [
        ("SomeType", "SomeReason", "Some message"),
        ("Normal", "SomeReason", "Some message"),
        ("Warning", "SomeReason", "Some message"),
        ("Error", "SomeReason", "Some exception: Exception text."),
    ];
    let mut posted = Vec::new();
    for _ in 0..run.patience() {
        posted = run.list("events").await;
        if posted.len() >= expected.len() {
            break;
        }
        run.pause().await;
    }
    let part = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let mut told: Vec<_> = posted
        .iter()
        .map(|it| (part(it, "type"), part(it, "reason"), part(it, "message")))
        .collect();
    told.sort();
    let mut expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    expected.sort();
    assert_eq!(told, expected);
    for event in &posted {
        assert_eq!(event["involvedObject"]["name"], OBJECT);
    }
    run.end().await;
}

pub(super) async fn testing<P: Place>(run: P) {
    run.create_object().await;
    let prefix = run.prefix();
    run.until_says(&format!("{prefix}Creation is in progress:")).await;
    run.until_says(&format!("{prefix}Something was logged here.")).await;
    run.until_object("the creation is handled", is_settled).await;
    run.delete_object().await;
    run.until_says(&format!("{prefix}Deleted, really deleted")).await;
    run.end().await.assert_count("Something was logged here.", 1);
}

pub(super) async fn embedded<P: Place>(run: P) {
    run.create_object().await;
    run.until_says("Handler 'create_fn' succeeded.").await;
    run.until_prints(&format!("Hello, {OBJECT}!")).await;
    run.until_object("the creation is handled", is_settled).await;
    run.delete_object().await;
    run.until_says("Handler 'delete_fn' succeeded.").await;
    run.until_prints(&format!("Good bye, {OBJECT}!")).await;
    run.until_gone(EXAMPLES, OBJECT).await;
    run.end().await.assert_count("' failed ", 0);
}
