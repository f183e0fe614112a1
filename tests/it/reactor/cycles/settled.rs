//! What happens to an object between the operator's own requests: their events may be all that shows it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kopf::{
    logic::handlers::{handler::Kind, outcome::CallEnd},
    ports::BoxFuture,
    settings::Settings,
    testing::{EXAMPLES, Environment, Fate, Link, handler_of_examples, object, pass},
};
use serde_json::{Value, json};

use super::script::{Script, with_status};

/// Returns the calls of handlers, and the number of the operator's patches, if a user acts right before one of its patches: the first
/// one writes the status, the second one the essence.
async fn calls_after(
    kinds: &[(Kind, &'static str)],
    before: u64,
    act: impl Fn(&Environment) + Send + Sync + 'static,
) -> (Vec<String>, usize) {
    let (env, script) = (Arc::new(with_status()), Script::default());
    let made = script
        .handler((Kind::Create, "made"), |_| CallEnd::Returned(Some(json!({ "by": "made" }))));
    let others = kinds.iter().map(|(kind, id)| script.quiet(*kind, id));
    let handlers = [made].into_iter().chain(others).collect();
    let link = Link::new(&env.server);
    let (patches, user) = (AtomicU64::new(0), Arc::clone(&env));
    link.set_rule(move |request| {
        if request.method() == "PATCH" && patches.fetch_add(1, Ordering::Relaxed) + 1 == before {
            act(&user);
        }
        Fate::Pass
    });
    let running = script.start(&env, (&link, handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(60).await;
    running.stop().await;
    (script.calls.lines(), env.requests("PATCH", "").len())
}

fn edit(merge: Value) -> impl Fn(&Environment) + Send + Sync + 'static {
    move |env| drop(env.edit(EXAMPLES, "ns1/a", merge.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_change_between_the_operators_own_requests_is_handled() {
    let all = [(Kind::Update, "changed")];
    for before in [1, 2] {
        for merge in [
            json!({ "spec": { "new": null, "x": 1 } }),
            json!({ "data": {} }),
            json!({ "metadata": { "labels": { "x": "y" } } }),
            json!({ "metadata": { "annotations": { "example.com/x": "" } } }),
        ] {
            let (calls, _) = calls_after(&all, before, edit(merge.clone())).await;
            assert_eq!(calls, ["made a", "changed a"], "{merge} before patch {before}");
        }
        for merge in [
            json!({ "status": { "x": 1 } }),
            json!({ "metadata": { "finalizers": ["example.com/x"] } }),
            json!({ "metadata": { "annotations": { "kopf.zalando.org/other": "" } } }),
        ] {
            let (calls, _) = calls_after(&all, before, edit(merge.clone())).await;
            assert_eq!(calls, ["made a"], "{merge} before patch {before}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_between_the_operators_own_requests_is_handled() {
    let all = [(Kind::Delete, "gone")];
    // The first patch adds the finalizer, the second one writes the status.
    for before in [2, 3] {
        let act = |env: &Environment| env.delete(EXAMPLES, "ns1/a");
        let (calls, _) = calls_after(&all, before, act).await;
        assert_eq!(calls.last().map(String::as_str), Some("gone a"), "before patch {before}");
    }
}

/// A user who removes the finalizer gets it back.
#[tokio::test(start_paused = true)]
async fn a_finalizer_that_is_removed_between_the_operators_own_requests_is_added_again() {
    let remove = edit(json!({ "metadata": { "finalizers": null } }));
    let (calls, patches) = calls_after(&[(Kind::Delete, "gone")], 3, remove).await;
    assert_eq!((calls, patches), (vec!["made a".to_owned()], 4));
}

/// Handlers of raw events see every event, and daemons start.
#[tokio::test(start_paused = true)]
async fn all_other_handlers_see_the_events_of_the_operators_own_requests() {
    let (calls, _) = calls_after(&[(Kind::Event, "seen")], 0, |_| {}).await;
    let seen: Vec<_> = calls.iter().filter(|it| it.starts_with("seen")).collect();
    assert_eq!(seen, ["seen a", "seen MODIFIED a", "seen MODIFIED a"]);
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_the_status_sees_what_the_operator_has_written() {
    let (env, script) = (with_status(), Script::default());
    let made = script.handler((Kind::Create, "made"), |_| CallEnd::Returned(Some(json!("done"))));
    let calls = script.calls.clone();
    let function = script.functions.handler("status", move |_| {
        calls.add("status");
        Box::pin(async { CallEnd::Returned(None) }) as BoxFuture<'static, CallEnd>
    });
    let mut field = handler_of_examples(Kind::Update, function);
    field.filters.field = Some(vec!["status".into(), "made".into()]);
    let link = Link::new(&env.server);
    let running = script.start(&env, (&link, vec![made, field]), Settings::default());
    env.create(object("ns1", "a"));
    pass(60).await;
    assert_eq!(script.calls.lines(), ["made a", "status"]);
    running.stop().await;
}
