//! Events and lists that are older than the operator's own requests: finished work is not done again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use kopf::{
    call::Invocation,
    logic::handlers::{handler::Kind, outcome::CallEnd},
    ports::BoxFuture,
    settings::Settings,
    testing::{EXAMPLES, Environment, Fate, Link, LogCapture, handler_of_examples, object, pass},
};
use kopf_apiserver::{Fault, FaultEffect};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use super::script::{Script, impatient, with_status};

/// Returns whether a body is a list.
fn is_list(text: &Bytes) -> bool {
    text.starts_with(b"{\"kind\":\"KopfExampleList\"")
        || text.windows(17).take(200).any(|it| it == b"\"KopfExampleList\"")
}

/// Ends the watches; their next one gets a 410, and a list follows.
fn list_again(env: &Environment) {
    env.create(object("ns1", "other"));
    env.server.compact();
    env.server.close_watches();
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_after_the_consistency_timeout_repeats_no_handler() {
    let (env, script) = (Environment::default(), Script::default());
    let calls = script.calls.clone();
    let slow = script.functions.handler("made", move |_| {
        calls.add("made");
        Box::pin(async {
            time::sleep(Duration::from_secs(2)).await;
            CallEnd::Returned(None)
        }) as BoxFuture<'static, CallEnd>
    });
    let handlers =
        vec![handler_of_examples(Kind::Create, slow), script.quiet(Kind::Update, "changed")];
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    env.create(object("ns1", "a"));
    pass(1).await;
    link.lag(Duration::from_secs(20));
    env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "labels": { "x": "y" } } }));
    pass(300).await;
    // The label was set before the creation was fully handled, so it is a change afterwards.
    assert_eq!(script.calls.lines(), ["made", "changed a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_server_that_lags_behind_repeats_no_handler() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Event, "seen")];
    let link = Link::new(&env.server);
    let (old, is_stale) = (Arc::new(Mutex::new(None::<Bytes>)), Arc::new(AtomicBool::new(false)));
    let (kept, stale) = (Arc::clone(&old), Arc::clone(&is_stale));
    link.edit(move |text| {
        if !is_list(&text) {
            return text;
        }
        let mut kept = kept.lock();
        match &*kept {
            Some(old) if stale.swap(false, Ordering::Relaxed) => old.clone(),
            _ => {
                *kept = Some(text.clone());
                text
            }
        }
    });
    env.create(object("ns1", "a"));
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(60).await;
    assert_eq!(script.count("made a"), 1);
    assert!(old.lock().is_some(), "the first list was kept");
    is_stale.store(true, Ordering::Relaxed);
    list_again(&env);
    pass(60).await;
    assert_eq!(script.count("made a"), 1, "{:?}", script.calls.lines());
    assert!(!is_stale.load(Ordering::Relaxed), "the old list was shown");
    assert!(script.count("seen a") >= 2, "it was listed: {:?}", script.calls.lines());
    running.stop().await;
}

/// The pause of a handler continues when an older event interrupts it.
#[tokio::test(start_paused = true)]
async fn an_older_event_does_not_end_the_pause_of_a_handler() {
    let (env, script) = (Environment::default(), Script::default());
    let is_first = AtomicBool::new(true);
    let later = move |_: &Invocation| {
        use kopf::logic::handlers::outcome::{Raised, RaisedKind};
        if !is_first.swap(false, Ordering::Relaxed) {
            return CallEnd::Returned(None);
        }
        let kind = RaisedKind::Temporary(Some(Duration::from_secs(30)));
        CallEnd::Raised(Raised { kind, message: "later".into(), trace: None })
    };
    let handlers = vec![script.handler((Kind::Create, "made"), later)];
    let link = Link::new(&env.server);
    // The event of the creation is repeated when the watch has shown the record of the failure.
    let first = Arc::new(Mutex::new(None::<Bytes>));
    let lines = AtomicU64::new(0);
    link.edit(move |text| {
        if !text.starts_with(b"{\"type\":") {
            return text;
        }
        let mut first = first.lock();
        let count = lines.fetch_add(1, Ordering::Relaxed);
        match &*first {
            None if text.starts_with(b"{\"type\":\"ADDED\"") => *first = Some(text.clone()),
            Some(added) if count == 1 => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let added = String::from_utf8_lossy(added).replace("\"ADDED\"", "\"MODIFIED\"");
                return format!("{}\n{}", text.trim_end(), added).into();
            }
            _ => {}
        }
        text
    });
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    env.create(object("ns1", "a"));
    pass(120).await;
    let times: Vec<_> = script.calls.timed().into_iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(times, [times[0], times[0] + 30], "{:?}", script.calls.lines());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_before_a_backup_is_restored_is_not_recorded_afterwards() {
    let (env, script) = (with_status(), Script::default());
    let calls = script.calls.clone();
    let slow = script.functions.handler("made", move |_| {
        calls.add("made");
        Box::pin(async {
            time::sleep(Duration::from_secs(3)).await;
            CallEnd::Returned(Some(json!("done")))
        }) as BoxFuture<'static, CallEnd>
    });
    env.create(object("ns1", "a"));
    let backup = env.server.export();
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 1 } }));
    let handlers = vec![handler_of_examples(Kind::Create, slow)];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    pass(1).await;
    env.server.roll_back(backup);
    pass(60).await;
    assert_eq!(script.calls.lines(), ["made", "made"]);
    let object = env.get(EXAMPLES, "ns1/a");
    assert_eq!(object["status"]["made"], "done");
    let annotations = object["metadata"]["annotations"].to_string();
    assert!(annotations.contains("last-handled") && !annotations.contains("size"), "{object}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_before_a_request_that_fails_counts_as_our_own() {
    let (env, script) = (with_status(), Script::default());
    let result = |_: &Invocation| CallEnd::Returned(Some(json!("done")));
    let handlers =
        vec![script.handler((Kind::Create, "made"), result), script.quiet(Kind::Update, "changed")];
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers), impatient());
    pass(1).await;
    // The status is accepted, the record is not; and the watch shows the earlier events ten seconds late.
    env.server.fault(Fault::always(FaultEffect::Pass).on("PATCH", "/status"));
    let refuse = FaultEffect::Refuse { code: 500, retry_after_seconds: None };
    env.server.fault(Fault::always(refuse).on("PATCH", "").times(3));
    env.create(object("ns1", "a"));
    link.lag(Duration::from_secs(10));
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 1 } }));
    pass(300).await;
    assert_eq!(script.calls.lines(), ["made a", "changed a"]);
    let statuses = env.requests("PATCH", "/status");
    let accepted = statuses.iter().filter(|it| it.status == 200).count();
    assert_eq!(accepted, 1, "what was accepted is not sent again");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restored_backup_the_order_of_versions_begins_anew() {
    let (env, script) = (Environment::default(), Script::default());
    let log = LogCapture::of("kopf");
    let handlers = vec![script.quiet(Kind::Create, "made"), script.quiet(Kind::Update, "changed")];
    let link = Link::new(&env.server);
    // Until the backup is restored, all versions are higher by a million.
    let is_restored = Arc::new(AtomicBool::new(false));
    let restored = Arc::clone(&is_restored);
    link.edit(move |text| {
        if restored.load(Ordering::Relaxed) || is_list(&text) {
            return text;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        text.replace("\"resourceVersion\":\"", "\"resourceVersion\":\"1000").into()
    });
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    env.create(object("ns1", "a"));
    pass(60).await;
    assert_eq!(script.calls.take(), ["made a"]);
    is_restored.store(true, Ordering::Relaxed);
    let is_expired = AtomicBool::new(false);
    link.set_rule(move |request| {
        let is_ours = request.uri().path().contains("kopfexamples");
        let has_version = |it: &str| it.contains("resourceVersion=");
        let is_watch = is_ours && request.uri().query().is_some_and(has_version);
        let is_first = is_watch && !is_expired.fetch_or(is_watch, Ordering::Relaxed);
        if is_first { Fate::Refuse(410) } else { Fate::Pass }
    });
    env.server.close_watches();
    pass(60).await;
    for size in [1, 2] {
        env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": size } }));
        pass(30).await;
        let calls = script.calls.take();
        let changes = calls.iter().filter(|it| *it == "changed a").count();
        assert_eq!(changes, 1, "size {size}: {calls:?}\n{}", log.text());
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_own_event_was_lost_with_a_restored_backup_is_read_again() {
    let (env, script) = (Environment::default(), Script::default());
    env.create(object("ns1", "a"));
    let backup = env.server.export();
    let link = Link::new(&env.server);
    // The event that shows the record of the handler would come much later than the list of the restored server.
    link.lag(Duration::from_secs(20));
    let handlers = vec![script.quiet(Kind::Create, "made")];
    let running = script.start(&env, (&link, handlers), Settings::default());
    pass(1).await;
    let annotations =
        |env: &Environment| env.get(EXAMPLES, "ns1/a")["metadata"]["annotations"].to_string();
    assert_eq!(script.calls.lines(), ["made a"]);
    assert!(annotations(&env).contains("last-handled"), "it is recorded");
    env.server.roll_back(backup);
    assert!(!annotations(&env).contains("last-handled"), "the backup is from before the record");
    pass(60).await;
    assert_eq!(script.calls.lines(), ["made a", "made a"]);
    assert!(annotations(&env).contains("last-handled"), "it is recorded again");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_list_has_come_before_its_changes_are_dropped_is_handled_again() {
    let (env, script) = (with_status(), Script::default());
    env.create(object("ns1", "a"));
    let backup = env.server.export();
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 1 } }));
    let link = Link::new(&env.server);
    let is_first = AtomicBool::new(true);
    link.set_rule(move |request| {
        let is_status = request.uri().path().ends_with("/status");
        let is_lost = is_status && is_first.swap(false, Ordering::Relaxed);
        if is_lost { Fate::Hang } else { Fate::Pass }
    });
    let result = |_: &Invocation| CallEnd::Returned(Some(json!("done")));
    let handlers = vec![script.handler((Kind::Create, "made"), result)];
    let mut settings = Settings::default();
    // The list of the restored server arrives while the first request hangs, and the next cycle starts with it.
    settings.networking.error_backoffs.clear();
    let running = script.start(&env, (&link, handlers), settings);
    pass(1).await;
    env.server.roll_back(backup);
    pass(300).await;
    assert_eq!(script.calls.lines(), ["made a", "made a"]);
    let object = env.get(EXAMPLES, "ns1/a");
    let annotations = object["metadata"]["annotations"].to_string();
    assert!(annotations.contains("last-handled") && !annotations.contains("size"), "{object}");
    running.stop().await;
}
