//! The requests of a takeover, and the handlers that it calls.

use kopf::{
    logic::handlers::{
        handler::Kind,
        lifecycle::{Chooser, Lifecycle},
    },
    reactor::Operator,
};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::json;

use super::edited::{Does, EXAMPLES, Edited, environment, object, on, pass};

#[tokio::test(start_paused = true)]
async fn an_edit_of_code_asks_nothing_of_the_cluster_and_holds_for_the_next_event() {
    let both = |code| [on(Kind::Create, "made", code), on(Kind::Update, "changed", code)];
    let mut operator = Edited::new(environment(&["a"], &[]), &both(1));
    pass(1).await;
    let before = operator.requests("kopfexamples");
    let changes = operator.swap(&both(2)).await;
    assert_eq!(changes, "changed on_create 'made', on_update 'changed'");
    assert_eq!(operator.requests("kopfexamples"), before, "no list, no watch, no patch");
    operator.edit(EXAMPLES, "a", 1);
    operator.env.create(object("KopfExample", "b"));
    pass(1).await;
    let after = operator.requests("kopfexamples");
    assert!(after[before.len()..].iter().all(|it| it.starts_with("patch ")), "{after:?}");
    let mut lines = operator.end().await.take_sorted();
    lines.sort();
    assert_eq!(lines, ["changed.2@2 a", "made.1@1 a", "made.2@2 b"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_ends_on_its_own_generation_and_is_not_repeated() {
    let slow = |code| [on(Kind::Create, "slow", code).does(Does::Work(10))];
    let mut operator = Edited::new(environment(&["a"], &[]), &slow(1));
    pass(2).await;
    operator.swap(&slow(2)).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(60).await;
    assert_eq!(operator.end().await.take_sorted(), ["slow.1@1 a begins", "slow.1@1 a ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_removed_while_it_waits_for_its_retry_holds_nobody_up() {
    let made = on(Kind::Create, "made", 1);
    let failing = on(Kind::Create, "failing", 1).does(Does::Retry(500));
    let updated = on(Kind::Update, "updated", 1);
    let both = [made.clone(), failing, updated.clone()];
    let mut operator = Edited::new(environment(&["a"], &[]), &both);
    pass(10).await;
    operator.swap(&[made, updated]).await;
    pass(10).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(10).await;
    let lines = operator.end().await.take_sorted();
    assert_eq!(lines, ["failing.1@1 a fails", "made.1@1 a", "updated.1@2 a"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_resource_gets_a_stream_and_one_that_nobody_wants_loses_it() {
    let made = on(Kind::Create, "made", 1);
    let other = on(Kind::Create, "made", 1).of("others");
    let mut operator = Edited::new(environment(&["a"], &["x"]), std::slice::from_ref(&made));
    pass(1).await;
    let before = operator.requests("kopfexamples");
    let changes = operator.swap(&[made, other.clone()]).await;
    assert_eq!(changes, "added on_create 'made'");
    assert_eq!(operator.requests("kopfexamples"), before);
    assert_eq!(operator.requests("others")[..2], ["list", "watch"]);
    assert_eq!(operator.take(), ["made.1@1 a", "made.1@2 x"]);
    operator.swap(&[other]).await;
    operator.env.create(object("KopfExample", "b"));
    operator.env.create(object("Other", "y"));
    pass(1).await;
    assert_eq!(operator.end().await.take_sorted(), ["made.1@3 y"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_added_sees_what_it_would_see_after_a_start() {
    let event = on(Kind::Event, "seen", 1);
    let mut operator = Edited::new(environment(&["a"], &[]), std::slice::from_ref(&event));
    pass(1).await;
    let before = operator.requests("kopfexamples");
    let more = on(Kind::Event, "more", 1);
    operator.swap(&[event.clone(), more.clone(), on(Kind::Create, "made", 1)]).await;
    let after = operator.requests("kopfexamples");
    assert_eq!(after[before.len()], "list", "one list, and no other watch");
    assert_eq!(after.iter().filter(|it| *it == "watch").count(), 1);
    // The patch of the creation causes an event for all handlers.
    let lines = operator.take();
    assert_eq!(lines.iter().filter(|it| it.starts_with("made")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("seen.1@1")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("seen.1@2")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("more")).count(), 2);
    let before = after;
    let more = on(Kind::Event, "more", 2);
    operator.swap(&[event, more, on(Kind::Create, "made", 2)]).await;
    assert_eq!(operator.requests("kopfexamples"), before, "they have seen all there is");
    assert!(operator.end().await.take_sorted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn finalizers_come_and_go_with_the_handlers_that_need_them() {
    let made = on(Kind::Create, "made", 1);
    let deleted = on(Kind::Delete, "deleted", 1);
    let mut operator = Edited::new(environment(&["a"], &[]), std::slice::from_ref(&made));
    pass(1).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 0);
    operator.swap(&[made.clone(), deleted.clone()]).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 1);
    operator.swap(&[made.clone(), deleted.clone().with("optional", true)]).await;
    operator.swap(&[made.clone(), deleted]).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 1);
    operator.swap(&[made]).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 0);
    let watches = operator.requests("kopfexamples").iter().filter(|it| *it == "watch").count();
    assert_eq!(watches, 1);
    assert_eq!(operator.end().await.take_sorted(), ["made.1@1 a"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_late_shows_nothing_to_those_who_know_better() {
    let seen = on(Kind::Event, "seen", 1);
    let mut operator = Edited::new(environment(&["a", "b"], &[]), std::slice::from_ref(&seen));
    pass(1).await;
    let late = FaultEffect::Latency(std::time::Duration::from_secs(5));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(1));
    operator.swap(&[seen, on(Kind::Event, "more", 1)]).await;
    operator.edit(EXAMPLES, "a", 1);
    operator.env.delete(EXAMPLES, "ns1/b");
    operator.env.create(object("KopfExample", "c"));
    pass(10).await;
    let lines = operator.end().await.take_sorted();
    let more: Vec<_> = lines.iter().filter(|it| it.starts_with("more")).collect();
    assert_eq!(more, ["more.1@2 a", "more.1@2 b", "more.1@2 c"], "each once: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn the_order_of_handlers_is_that_of_the_generation() {
    let two = [on(Kind::Create, "one", 1), on(Kind::Create, "two", 1).does(Does::Work(5))];
    let change = |operator| Operator { lifecycle: Lifecycle::OneByOne, ..operator };
    let mut operator = Edited::with(environment(&[], &[]), &two, change);
    pass(1).await;
    let all = Chooser::BuiltIn(Lifecycle::AllAtOnce);
    let answer = operator.send(&two, Some(all)).await;
    answer.await.expect("an answer").expect("it takes over");
    operator.env.create(object("KopfExample", "a"));
    pass(20).await;
    let patches =
        operator.requests("kopfexamples").iter().filter(|it| it.starts_with("patch")).count();
    assert_eq!(patches, 1, "both were handled in one cycle");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_was_mended_is_forgotten_at_once() {
    let mut operator =
        Edited::with(environment(&[], &[]), &[on(Kind::Create, "made", 1)], |operator| {
            operator.settings.lock().networking.error_backoffs.clear();
            operator
        });
    pass(1).await;
    operator.env.refuse(500, "PATCH", "kopfexamples");
    operator.env.create(object("KopfExample", "a"));
    pass(600).await;
    operator.env.server.clear_faults();
    let before = operator.requests("kopfexamples").len();
    operator.swap(&[on(Kind::Create, "made", 2)]).await;
    pass(5).await;
    assert!(operator.requests("kopfexamples").len() > before, "tried again at once");
    let body = operator.env.server.get(EXAMPLES, "ns1", "a").expect("it is there");
    let stored = &body["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"];
    assert_ne!(*stored, json!(null));
    assert_eq!(
        operator.end().await.take_sorted(),
        ["made.1@1 a"],
        "what was done is not done again"
    );
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_only_looked_into_for_groups_that_nobody_has_named_before() {
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/kopfexamples");
    let mut operator = Edited::new(environment(&["a"], &[]), std::slice::from_ref(&made));
    pass(1).await;
    let looked = |operator: &Edited| {
        let requests = operator.env.server.requests();
        let paths = requests.iter().map(|it| it.path.clone());
        let of_groups = paths.filter(|it| it.starts_with("/api") && it.matches('/').count() < 4);
        of_groups.filter(|it| !it.contains("customresource")).collect::<Vec<_>>()
    };
    let before = looked(&operator);
    assert!(!before.iter().any(|it| it.starts_with("/apis/apps")), "{before:?}");
    let other = on(Kind::Create, "other", 1).of("kopf.dev/v1/others");
    operator.swap(&[made.clone(), other]).await;
    assert_eq!(looked(&operator), before);
    let deployed = on(Kind::Create, "deployed", 1).of("apps/v1/deployments");
    operator.swap(&[made, deployed]).await;
    let more = looked(&operator).split_off(before.len());
    assert_eq!(more, ["/apis", "/apis/apps/v1"]);
    assert_eq!(operator.requests("deployments"), ["list", "watch"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_read_in_the_moment_of_an_edit_is_read_later() {
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/kopfexamples");
    let mut operator =
        Edited::with(environment(&["a"], &["x"]), std::slice::from_ref(&made), |operator| {
            operator.settings.lock().networking.error_backoffs.clear();
            operator
        });
    pass(1).await;
    operator.env.refuse(503, "GET", "/api");
    // Without a group, all of them must be read.
    operator.swap(&[made, on(Kind::Create, "other", 1).of("others")]).await;
    pass(5).await;
    operator.env.server.clear_faults();
    pass(60).await;
    assert_eq!(operator.end().await.take_sorted(), ["made.1@1 a", "other.1@2 x"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_keeps_a_generation_but_the_calls_that_run() {
    let lines = |code, work| {
        vec![
            on(Kind::Create, "made", code),
            on(Kind::Update, "failing", code).does(Does::Retry(500)),
            on(Kind::Timer, "tick", 1).with("interval", 1000),
            on(Kind::Daemon, "over", 1).does(Does::Nothing),
            on(Kind::Daemon, "failed", 1).does(Does::Retry(700)),
            on(Kind::Index, "idx", 1),
            on(Kind::Index, "failing", 1).does(Does::Fail).of("others"),
            on(Kind::Event, "seen", 1).of("others"),
            on(Kind::Startup, "begin", 1),
            on(Kind::Cleanup, "clean", 1),
            on(Kind::Field, "slow", code).with("field", "spec.number").does(Does::Work(work)),
        ]
    };
    let mut operator = Edited::new(environment(&["a", "b"], &["x"]), &lines(1, 30));
    pass(1).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(10).await;
    operator.swap(&lines(2, 0)).await;
    assert_eq!(operator.alive(), [1, 2], "a call of the first runs");
    pass(60).await;
    assert_eq!(operator.alive(), [2]);
    operator.swap(&lines(2, 0)).await;
    assert_eq!(operator.alive(), [3], "who sleeps, rests or is over keeps nothing");
    operator.swap(&[on(Kind::Event, "e", 1)]).await;
    assert_eq!(operator.alive(), [4]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_handled_during_a_swap_is_not_handled_again() {
    let lines = |code| [on(Kind::Delete, "deleted", code).does(Does::Work(10))];
    let mut operator = Edited::new(environment(&["a", "b"], &[]), &lines(1));
    pass(1).await;
    operator.env.delete(EXAMPLES, "ns1/a");
    operator.env.delete(EXAMPLES, "ns1/b");
    pass(5).await;
    operator.swap(&lines(2)).await;
    // Another client is faster: the object is gone before the finalizer can be removed.
    operator.env.server.remove(EXAMPLES, "ns1", "b").expect("it is there");
    pass(30).await;
    let expected = ["a begins", "a ends", "b begins", "b ends"];
    assert_eq!(operator.end().await.take_sorted(), expected.map(|it| format!("deleted.1@1 {it}")));
}
