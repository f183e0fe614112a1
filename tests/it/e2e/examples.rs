//! Each example in both languages: what a user sees when following its README.

use serde_json::{Value, json};

use super::namespace::{Namespace, OBJECT, annotations, is_settled};
use super::operator::{Ended, Operator, file, ours};

/// One test per language.
macro_rules! in_both_languages {
    ($($example:ident: $directory:literal;)+) => {
        $(
            mod $example {
                #[tokio::test]
                async fn works_in_lua() {
                    if let Some(run) = super::Run::start($directory, "lua").await {
                        super::$example(run).await;
                    }
                }

                #[tokio::test]
                async fn works_in_rhai() {
                    if let Some(run) = super::Run::start($directory, "rhai").await {
                        super::$example(run).await;
                    }
                }
            }
        )+
    };
}

in_both_languages! {
    minimal: "01-minimal";
    exceptions: "03-exceptions";
    handlers: "05-handlers";
    peering: "06-peering";
    events: "08-events";
    filtering: "11-filtering-handlers";
    hooks: "13-hooks";
    subhandlers: "07-subhandlers";
    daemons: "14-daemons";
    timers: "15-timers";
    indexing: "16-indexing";
}

/// An example that runs in a namespace of its own.
struct Run {
    namespace: Namespace,
    operator: Operator,
    script: std::path::PathBuf,
}

impl Run {
    async fn start(directory: &str, language: &str) -> Option<Self> {
        let namespace = Namespace::for_test(&format!("example-{directory}-{language}")).await?;
        let script = file(&format!("examples/{directory}/handlers.{language}"));
        let operator = ours(&namespace, &script);
        Some(Run { namespace, operator, script })
    }

    /// The prefix of lines about the object.
    fn prefix(&self) -> String {
        format!("[{}/{OBJECT}] ", self.namespace.name)
    }

    async fn until_says(&self, text: &str) {
        self.operator.until_says(text).await;
    }

    /// Stops the operator and checks what holds for every example.
    async fn stop(self) -> Ended {
        let ended = self.operator.stop().await;
        ended.assert_code(0);
        ended.assert_count("Signal SIGTERM is received. Operator is stopping.", 1);
        ended.assert_count("panicked", 0);
        ended
    }
}

async fn minimal(run: Run) {
    run.namespace.apply_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let object = run
        .namespace
        .until_object(OBJECT, "the result is in the status", |it| {
            it["status"]["create_fn"] == json!({"message": "hello world"})
        })
        .await;
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
    run.namespace.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.stop().await;
    ended.assert_count("And here we are! Creating: {", 1);
    ended.assert_count(&format!("{prefix}Creation is in progress:"), 1);
    ended.assert_count("'create_fn' succeeded", 1);
    ended.assert_count("'create_fn' failed", 0);
}

async fn exceptions(run: Run) {
    run.namespace.apply_object().await;
    run.until_says("Creation is processed: 1 succeeded; 3 failed.").await;
    run.namespace.until_object(OBJECT, "the records are removed", is_settled).await;
    run.namespace.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.stop().await;
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
    // With the prefix of the object: the records in the logged patches have some of these texts, too.
    for (text, times) in lines {
        ended.assert_count(&format!("{prefix}Handler {text}"), times);
    }
}

async fn handlers(mut run: Run) {
    run.namespace.apply_object().await;
    run.until_says("Creation is processed: 3 succeeded; 0 failed.").await;
    let object = run.namespace.until_object(OBJECT, "it is handled", is_settled).await;
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    run.namespace.patch_object(r#"{"spec": {"field": "changed"}}"#).await;
    run.until_says("Updating is processed: 2 succeeded; 0 failed.").await;
    run.namespace.until_object(OBJECT, "the update is handled", is_settled).await;

    let again = ours(&run.namespace, &run.script);
    let first = std::mem::replace(&mut run.operator, again).stop().await;
    first.assert_code(0);
    for line in [
        "CREATED 1st",
        "CREATED 2nd",
        "FIELD CHANGED: None -> value",
        "UPDATED",
        "FIELD CHANGED: value -> changed",
    ] {
        first.assert_count(line, 1);
    }
    first.assert_count("RESUMED", 0);

    run.until_says("Resuming is processed: 2 succeeded; 0 failed.").await;
    run.namespace.delete_object().await;
    run.until_says("Deletion is processed: 2 succeeded; 0 failed.").await;
    run.namespace.until_gone().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let second = run.stop().await;
    for line in ["RESUMED 1st", "RESUMED 2nd", "DELETED 1st", "DELETED 2nd"] {
        second.assert_count(line, 1);
    }
    // Once per handler, as each has a cycle of its own.
    second.assert_count(&format!("{prefix}Deletion is in progress:"), 2);
    first.assert_count(&format!("{prefix}Adding the finalizer"), 1);
}

async fn peering(mut run: Run) {
    super::peering::define(&run.namespace, "default").await;
    let start = |args: &[&str]| super::peering::operator(&run.namespace, &run.script, args);
    let first = start(&[]);
    super::peering::until_records(&run.namespace, "default", 1).await;
    let equal = start(&[]);
    for operator in [&first, &equal] {
        operator.until_says("Possibly conflicting operators with the same priority: [<Peer ").await;
        operator.until_says("Pausing all operators, including self: [<Peer ").await;
    }
    equal.stop().await.assert_code(0);
    let resuming = "Resuming operations after the pause. Conflicting operators with the same priority are gone.";
    first.until_says(resuming).await;
    let strong = start(&["--dev"]);
    first.until_says("Pausing operations in favour of [<Peer ").await;
    first.until_says(": priority=666, lifetime=60, lastseen='").await;
    // The operator that every example starts with is standalone: it would handle the object, too.
    std::mem::replace(&mut run.operator, strong).stop().await.assert_code(0);
    run.namespace.apply_object().await;
    run.until_says("Handler 'create_fn' succeeded.").await;
    run.stop().await.assert_code(0);
    first.until_says_times(resuming, 2).await;
    let ended = first.stop().await;
    ended.assert_code(0);
    ended.assert_count("Handler 'create_fn' is invoked", 0);
}

async fn events(run: Run) {
    run.until_says("Starting the watch-stream for kopfexamples").await;
    run.namespace.apply_object().await;
    run.operator.until_says_times("'normal_event_fn' succeeded", 1).await;
    let object = run.namespace.object(OBJECT).await.expect("the object");
    assert_eq!(annotations(&object), [], "{object:#}");
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
    run.namespace.delete_object().await;
    run.operator.until_says_times("'normal_event_fn' succeeded", 2).await;
    let ended = run.stop().await;
    ended.assert_count(
        "'event_fn_with_error' failed with an exception and will ignore it: Oops!",
        2,
    );
    ended.assert_count("Event received: {", 2);
    ended.assert_count("DELETED", 1);
    ended.assert_count("atching the", 0); // "Patching the …", "Merge-patching the …"
}

async fn filtering(run: Run) {
    run.namespace.apply_object().await;
    run.until_says("Creation is processed: 10 succeeded; 0 failed.").await;
    run.namespace.until_object(OBJECT, "the creation is handled", is_settled).await;
    run.namespace.patch_object(r#"{"spec": {"field": "changed"}}"#).await;
    run.until_says("Updating is processed: 1 succeeded; 0 failed.").await;
    run.namespace.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.stop().await;
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

async fn hooks(run: Run) {
    run.until_says("Activity 'startup_fn_retried' succeeded.").await;
    run.until_says("Starting the watch-stream for pods").await;
    let ended = run.stop().await;
    for line in [
        "Activity 'startup_fn_simple' succeeded.",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 3s",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 2s",
        "Activity 'startup_fn_retried' failed temporarily: Going to succeed in 1s",
        "Starting retried...",
        "Activity 'startup_fn_retried' succeeded.",
        "Logging in in 2s...",
        "Activity 'login_fn' succeeded.",
        "Cleaning up...",
        "All pod-tasks are requested to stop...",
        "Activity 'cleanup_fn' succeeded.",
    ] {
        ended.assert_count(line, 1);
    }
}

async fn subhandlers(run: Run) {
    run.namespace.apply_object().await;
    run.until_says("Creation is processed: 1 succeeded; 0 failed.").await;
    let object = run.namespace.until_object(OBJECT, "the records are removed", is_settled).await;
    assert_eq!(annotations(&object).len(), 1, "{object:#}");
    run.namespace.delete_object().await;
    run.until_says("Deleted, really deleted").await;
    let prefix = run.prefix();
    let ended = run.stop().await;
    for item in ["item1", "item2"] {
        ended.assert_count(&format!("=== Handling creation for {item}. ==="), 1);
        ended.assert_count(&format!("{prefix}Handler 'create_fn/{item}' is invoked."), 1);
        ended.assert_count(&format!("{prefix}Handler 'create_fn/{item}' succeeded."), 1);
    }
    ended.assert_count(&format!("{prefix}Handler 'create_fn' is invoked."), 2);
    let unfinished = "Handler 'create_fn' has unfinished sub-handlers. Will retry soon.";
    ended.assert_count(&format!("{prefix}{unfinished}"), 1);
    ended.assert_count(&format!("{prefix}Handler 'create_fn' succeeded."), 1);
}

async fn daemons(run: Run) {
    run.namespace.apply_object().await;
    run.until_says("=> Ping from a sync daemon: field='value', retry=3").await;
    run.until_says("=> Ping from an async daemon: field='value'").await;
    let object = run.namespace.object(OBJECT).await.expect("the object");
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    assert_eq!(object["status"]["message"], "Failed 3 times.");
    assert_eq!(annotations(&object), [], "{object:#}");
    // They see the object as it is now, not as it was when they started.
    run.namespace.patch_object(r#"{"spec": {"field": "changed"}}"#).await;
    run.until_says("=> Ping from a sync daemon: field='changed', retry=3").await;
    run.until_says("=> Ping from an async daemon: field='changed'").await;
    run.namespace.delete_object().await;
    run.namespace.until_gone().await;
    let prefix = run.prefix();
    let ended = run.stop().await;
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
    // Maybe twice: the touch and the release are two requests, and the event of the first may come between.
    let released = format!("{prefix}Removing the finalizer, thus allowing the actual deletion.");
    assert!(ended.count(&released) > 0);
}

async fn timers(run: Run) {
    let sync = "Timer 'every_few_seconds_sync' succeeded.";
    run.namespace.apply_object().await;
    run.operator.until_says_times(sync, 4).await;
    run.operator.until_says_times("Timer 'every_few_seconds_async' succeeded.", 1).await;
    let object = run.namespace.object(OBJECT).await.expect("the object");
    assert_eq!(object["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    run.namespace.patch_object(r#"{"spec": {"field": "changed"}}"#).await;
    run.until_says("Ping from a sync timer: field='changed'").await;
    run.until_says("Ping from an async timer: field='changed'").await;
    run.namespace.delete_object().await;
    run.namespace.until_gone().await;
    let prefix = run.prefix();
    let ended = run.stop().await;
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

async fn indexing(run: Run) {
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": name } },
            "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
        })
    };
    for name in ["first", "second"] {
        run.namespace.create(&pod(name)).await;
    }
    let status = r#"{"status": {"phase": "Running"}}"#;
    let patch = ["patch", "pod", "first", "--subresource=status", "--type=merge", "-p", status];
    // Old versions of kubectl cannot write the status: then no pod runs.
    let is_patched = run.namespace.try_kubectl(&patch, "").await.is_ok();
    run.namespace.apply_object().await;
    let first = format!("{}::first", run.namespace.name);
    let expected = if is_patched { json!([first]) } else { json!([]) };
    let running = |object: &Value| object["status"]["running-pods"] == expected;
    run.namespace.until_object(OBJECT, "the running pods are known", running).await;
    run.namespace.kubectl(&["delete", "pod", "first", "--now", "--wait=false"]).await;
    let none = |object: &Value| object["status"]["running-pods"] == json!([]);
    run.namespace.until_object(OBJECT, "the pod is gone", none).await;
    run.until_says("Timer 'intervalled' succeeded.").await;
    let ended = run.stop().await;
    ended.assert_count("failed", 0);
    assert!(ended.count(r#""app=second":["second"]"#) > 0, "the timer prints the index");
}
