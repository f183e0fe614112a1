//! Records of handlers: none outlives the change that it belongs to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kopf::{
    logic::handlers::{
        handler::{Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    ports::BoxFuture,
    settings::Settings,
    testing::{EXAMPLES, Environment, Link, handler_of_examples, object, pass},
};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::json;
use tokio::time;

use super::script::{Script, impatient};

const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Returns a handler that takes this long, and whose first attempt fails.
fn retried(script: &Script, (kind, id): (Kind, &'static str), takes: Duration) -> Handler {
    let (calls, is_first) = (script.calls.clone(), Arc::new(AtomicBool::new(true)));
    let function = script.functions.handler(id, move |invocation| {
        let retry = invocation.attempt.map_or(0, |it| it.retry);
        calls.add(format!("{id} {retry}"));
        let has_failed = is_first.swap(false, Ordering::Relaxed);
        Box::pin(async move {
            time::sleep(takes).await;
            if !has_failed {
                return CallEnd::Returned(None);
            }
            let kind = RaisedKind::Temporary(Some(RETRY_DELAY));
            CallEnd::Raised(Raised { kind, message: "not yet".into(), trace: None })
        }) as BoxFuture<'static, CallEnd>
    });
    handler_of_examples(kind, function)
}

/// Returns the names of the records on the object, and what else is stored except the essence.
fn records(env: &Environment) -> Vec<String> {
    let object = env.get(EXAMPLES, "ns1/a");
    let annotations = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let own = annotations.keys().filter_map(|it| it.strip_prefix("kopf.zalando.org/"));
    own.filter(|it| *it != "last-handled-configuration").map(str::to_owned).collect()
}

fn edit(env: &Environment, size: u64) {
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": size } }));
}

/// The event is from a list before the record; the cycle continues with the response to the operator's own request.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_removes_the_records_that_its_event_does_not_show() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![retried(&script, (Kind::Update, "changed"), Duration::from_secs(1))];
    env.create(object("ns1", "a"));
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, handlers), impatient());
    pass(10).await;
    edit(&env, 1);
    time::sleep(Duration::from_millis(500)).await;
    // The object is listed while its handler runs. Afterwards the watch lags far behind.
    env.create(object("ns1", "other"));
    env.server.compact();
    env.server.close_watches();
    time::sleep(Duration::from_millis(300)).await;
    link.lag(Duration::from_secs(1000));
    pass(3).await;
    assert_eq!(records(&env), ["changed"], "{:?}", script.calls.lines());
    let refuse = FaultEffect::Refuse { code: 500, retry_after_seconds: None };
    env.server.fault(Fault::always(refuse).on("PATCH", "").times(1));
    pass(60).await;
    assert_eq!(script.calls.lines(), ["changed 0", "changed 1"]);
    let statuses: Vec<_> = env.requests("PATCH", "").iter().map(|it| it.status).collect();
    assert_eq!(statuses[statuses.len() - 2..], [500, 200], "the last request is repeated");
    assert_eq!(records(&env), [""; 0]);
    running.stop().await;
}

/// As in Kopf, a handler that is not finished continues with the next change.
#[tokio::test(start_paused = true)]
async fn a_handler_that_finished_for_a_reverted_edit_is_called_for_the_next_one() {
    let (env, script) = (Environment::default(), Script::default());
    let handlers = vec![
        script.quiet(Kind::Update, "also"),
        retried(&script, (Kind::Update, "changed"), Duration::ZERO),
    ];
    env.create(object("ns1", "a"));
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    pass(10).await;
    edit(&env, 1);
    time::sleep(Duration::from_millis(500)).await;
    assert_eq!(script.calls.take(), ["also a", "changed 0"]);
    assert_eq!(records(&env), ["also", "changed"]);
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": null } }));
    pass(30).await;
    assert_eq!(records(&env), ["changed"]);
    edit(&env, 2);
    pass(30).await;
    assert_eq!(script.calls.take_sorted(), ["also a", "changed 1"]);
    assert_eq!(records(&env), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_finished_for_an_edit_before_a_restored_backup_is_called_for_the_next_one() {
    let (env, script) = (Environment::default(), Script::default());
    let calls = script.calls.clone();
    let slow = script.functions.handler("also", move |_| {
        calls.add("also");
        Box::pin(async move {
            time::sleep(Duration::from_secs(2)).await;
            CallEnd::Returned(None)
        }) as BoxFuture<'static, CallEnd>
    });
    let handlers = vec![
        retried(&script, (Kind::Update, "changed"), Duration::from_secs(1)),
        handler_of_examples(Kind::Update, slow),
    ];
    env.create(object("ns1", "a"));
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    pass(10).await;
    let backup = env.server.export();
    edit(&env, 1);
    time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(script.calls.take(), ["changed 0", "also"]);
    // The handler that runs now is recorded on the restored object, which does not have the edit.
    env.server.roll_back(backup);
    pass(30).await;
    assert_eq!(records(&env), [""; 0]);
    edit(&env, 2);
    pass(30).await;
    assert_eq!(script.calls.take_sorted(), ["also", "changed 0"]);
    assert_eq!(records(&env), [""; 0]);
    running.stop().await;
}
