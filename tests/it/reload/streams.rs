//! What a swap asks of the cluster, and whom it calls.

use kopf::{
    logic::{
        handler::Kind,
        lifecycle::{Chooser, Lifecycle},
    },
    reactor::Operator,
};
use kopf_apiserver::{Effect, Fault};
use serde_json::json;

use super::stage::{Does, EXAMPLES, OTHERS, Stage, object, on, seconds, server};

#[tokio::test(start_paused = true)]
async fn an_edit_of_code_asks_nothing_of_the_cluster_and_holds_for_the_next_event() {
    let both = |code| [on(Kind::Create, "made", code), on(Kind::Update, "changed", code)];
    let mut stage = Stage::new(server(&["a"], &[]), &both(1));
    seconds(1).await;
    let before = stage.requests("kopfexamples");
    let changes = stage.swap(&both(2)).await;
    assert_eq!(changes, "changed on_create 'made', on_update 'changed'");
    assert_eq!(stage.requests("kopfexamples"), before, "no list, no watch, no patch");
    stage.edit(EXAMPLES, "a", 1);
    stage.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    seconds(1).await;
    let after = stage.requests("kopfexamples");
    assert!(after[before.len()..].iter().all(|it| it.starts_with("patch ")), "{after:?}");
    let mut lines = stage.end().await.take();
    lines.sort();
    assert_eq!(lines, ["changed.2@2 a", "made.1@1 a", "made.2@2 b"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_ends_on_its_own_generation_and_is_not_repeated() {
    let slow = |code| [on(Kind::Create, "slow", code).does(Does::Work(10))];
    let mut stage = Stage::new(server(&["a"], &[]), &slow(1));
    seconds(2).await;
    stage.swap(&slow(2)).await;
    stage.edit(EXAMPLES, "a", 1);
    seconds(60).await;
    assert_eq!(stage.end().await.take(), ["slow.1@1 a begins", "slow.1@1 a ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_removed_while_it_waits_for_its_retry_holds_nobody_up() {
    let made = on(Kind::Create, "made", 1);
    let failing = on(Kind::Create, "failing", 1).does(Does::Retry(500));
    let updated = on(Kind::Update, "updated", 1);
    let both = [made.clone(), failing, updated.clone()];
    let mut stage = Stage::new(server(&["a"], &[]), &both);
    seconds(10).await;
    stage.swap(&[made, updated]).await;
    seconds(10).await;
    stage.edit(EXAMPLES, "a", 1);
    seconds(10).await;
    let lines = stage.end().await.take();
    assert_eq!(lines, ["failing.1@1 a fails", "made.1@1 a", "updated.1@2 a"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_resource_gets_a_stream_and_one_that_nobody_wants_loses_it() {
    let made = on(Kind::Create, "made", 1);
    let other = on(Kind::Create, "made", 1).of("others");
    let mut stage = Stage::new(server(&["a"], &["x"]), std::slice::from_ref(&made));
    seconds(1).await;
    let before = stage.requests("kopfexamples");
    let changes = stage.swap(&[made, other.clone()]).await;
    assert_eq!(changes, "added on_create 'made'");
    assert_eq!(stage.requests("kopfexamples"), before);
    assert_eq!(stage.requests("others")[..2], ["list", "watch"]);
    assert_eq!(stage.notes.take(), ["made.1@1 a", "made.1@2 x"]);
    stage.swap(&[other]).await;
    stage.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    stage.server.create(OTHERS, object("Other", "y")).expect("it is new");
    seconds(1).await;
    assert_eq!(stage.end().await.take(), ["made.1@3 y"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_added_sees_what_it_would_see_after_a_start() {
    let event = on(Kind::Event, "seen", 1);
    let mut stage = Stage::new(server(&["a"], &[]), std::slice::from_ref(&event));
    seconds(1).await;
    let before = stage.requests("kopfexamples");
    let more = on(Kind::Event, "more", 1);
    stage.swap(&[event.clone(), more.clone(), on(Kind::Create, "made", 1)]).await;
    let after = stage.requests("kopfexamples");
    assert_eq!(after[before.len()], "list", "one list, and no other watch");
    assert_eq!(after.iter().filter(|it| *it == "watch").count(), 1);
    // The patch of the creation comes back as an event for all.
    let lines = stage.notes.take();
    assert_eq!(lines.iter().filter(|it| it.starts_with("made")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("seen.1@1")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("seen.1@2")).count(), 1);
    assert_eq!(lines.iter().filter(|it| it.starts_with("more")).count(), 2);
    let before = after;
    let more = on(Kind::Event, "more", 2);
    stage.swap(&[event, more, on(Kind::Create, "made", 2)]).await;
    assert_eq!(stage.requests("kopfexamples"), before, "they have seen all there is");
    assert!(stage.end().await.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn finalizers_come_and_go_with_the_handlers_that_need_them() {
    let made = on(Kind::Create, "made", 1);
    let deleted = on(Kind::Delete, "deleted", 1);
    let mut stage = Stage::new(server(&["a"], &[]), std::slice::from_ref(&made));
    seconds(1).await;
    assert_eq!(stage.finalizers(EXAMPLES, "a"), 0);
    stage.swap(&[made.clone(), deleted.clone()]).await;
    assert_eq!(stage.finalizers(EXAMPLES, "a"), 1);
    stage.swap(&[made.clone(), deleted.clone().with("optional", true)]).await;
    stage.swap(&[made.clone(), deleted]).await;
    assert_eq!(stage.finalizers(EXAMPLES, "a"), 1);
    stage.swap(&[made]).await;
    assert_eq!(stage.finalizers(EXAMPLES, "a"), 0);
    let watches = stage.requests("kopfexamples").iter().filter(|it| *it == "watch").count();
    assert_eq!(watches, 1);
    assert_eq!(stage.end().await.take(), ["made.1@1 a"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_late_shows_nothing_to_those_who_know_better() {
    let seen = on(Kind::Event, "seen", 1);
    let mut stage = Stage::new(server(&["a", "b"], &[]), std::slice::from_ref(&seen));
    seconds(1).await;
    let late = Effect::Latency(std::time::Duration::from_secs(5));
    stage.server.fault(Fault::always(late).on("GET", "kopfexamples").times(1));
    stage.swap(&[seen, on(Kind::Event, "more", 1)]).await;
    stage.edit(EXAMPLES, "a", 1);
    stage.server.delete(EXAMPLES, "ns1", "b").expect("it is there");
    stage.server.create(EXAMPLES, object("KopfExample", "c")).expect("it is new");
    seconds(10).await;
    let lines = stage.end().await.take();
    let more: Vec<_> = lines.iter().filter(|it| it.starts_with("more")).collect();
    assert_eq!(more, ["more.1@2 a", "more.1@2 b", "more.1@2 c"], "each once: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn the_order_of_handlers_is_that_of_the_generation() {
    let two = [on(Kind::Create, "one", 1), on(Kind::Create, "two", 1).does(Does::Work(5))];
    let change = |operator| Operator { lifecycle: Lifecycle::OneByOne, ..operator };
    let mut stage = Stage::with(server(&[], &[]), &two, change);
    seconds(1).await;
    let all = Chooser::BuiltIn(Lifecycle::AllAtOnce);
    let answer = stage.send(&two, Some(all)).await;
    answer.await.expect("an answer").expect("it takes over");
    stage.server.create(EXAMPLES, object("KopfExample", "a")).expect("it is new");
    seconds(20).await;
    let patches =
        stage.requests("kopfexamples").iter().filter(|it| it.starts_with("patch")).count();
    assert_eq!(patches, 1, "both were handled in one cycle");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_was_mended_is_forgotten_at_once() {
    let mut stage = Stage::with(server(&[], &[]), &[on(Kind::Create, "made", 1)], |operator| {
        operator.settings.lock().networking.error_backoffs.clear();
        operator
    });
    seconds(1).await;
    let refusal = Effect::Refuse { code: 500, retry_after_seconds: None };
    stage.server.fault(Fault::always(refusal).on("PATCH", "kopfexamples"));
    stage.server.create(EXAMPLES, object("KopfExample", "a")).expect("it is new");
    seconds(600).await;
    stage.server.clear_faults();
    let before = stage.requests("kopfexamples").len();
    stage.swap(&[on(Kind::Create, "made", 2)]).await;
    seconds(5).await;
    assert!(stage.requests("kopfexamples").len() > before, "tried again at once");
    let body = stage.server.get(EXAMPLES, "ns1", "a").expect("it is there");
    let stored = &body["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"];
    assert_ne!(*stored, json!(null));
    assert_eq!(stage.end().await.take(), ["made.1@1 a"], "what was done is not done again");
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_only_looked_into_for_groups_that_nobody_has_named_before() {
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/kopfexamples");
    let mut stage = Stage::new(server(&["a"], &[]), std::slice::from_ref(&made));
    seconds(1).await;
    let looked = |stage: &Stage| {
        let requests = stage.server.requests();
        let paths = requests.iter().map(|it| it.path.clone());
        let of_groups = paths.filter(|it| it.starts_with("/api") && it.matches('/').count() < 4);
        of_groups.filter(|it| !it.contains("customresource")).collect::<Vec<_>>()
    };
    let before = looked(&stage);
    assert!(!before.iter().any(|it| it.starts_with("/apis/apps")), "{before:?}");
    let other = on(Kind::Create, "other", 1).of("kopf.dev/v1/others");
    stage.swap(&[made.clone(), other]).await;
    assert_eq!(looked(&stage), before);
    let deployed = on(Kind::Create, "deployed", 1).of("apps/v1/deployments");
    stage.swap(&[made, deployed]).await;
    let more = looked(&stage).split_off(before.len());
    assert_eq!(more, ["/apis", "/apis/apps/v1"]);
    assert_eq!(stage.requests("deployments"), ["list", "watch"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_read_in_the_moment_of_an_edit_is_read_later() {
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/kopfexamples");
    let mut stage = Stage::with(server(&["a"], &["x"]), std::slice::from_ref(&made), |operator| {
        operator.settings.lock().networking.error_backoffs.clear();
        operator
    });
    seconds(1).await;
    let refusal = Effect::Refuse { code: 503, retry_after_seconds: None };
    stage.server.fault(Fault::always(refusal).on("GET", "/api"));
    // Without a group, all of them are to be read.
    stage.swap(&[made, on(Kind::Create, "other", 1).of("others")]).await;
    seconds(5).await;
    stage.server.clear_faults();
    seconds(60).await;
    assert_eq!(stage.end().await.take(), ["made.1@1 a", "other.1@2 x"]);
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
    let mut stage = Stage::new(server(&["a", "b"], &["x"]), &lines(1, 30));
    seconds(1).await;
    stage.edit(EXAMPLES, "a", 1);
    seconds(10).await;
    stage.swap(&lines(2, 0)).await;
    assert_eq!(stage.alive(), [1, 2], "a call of the first runs");
    seconds(60).await;
    assert_eq!(stage.alive(), [2]);
    stage.swap(&lines(2, 0)).await;
    assert_eq!(stage.alive(), [3], "who sleeps, rests or is over keeps nothing");
    stage.swap(&[on(Kind::Event, "e", 1)]).await;
    assert_eq!(stage.alive(), [4]);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_handled_during_a_swap_is_not_handled_again() {
    let lines = |code| [on(Kind::Delete, "deleted", code).does(Does::Work(10))];
    let mut stage = Stage::new(server(&["a", "b"], &[]), &lines(1));
    seconds(1).await;
    stage.server.delete(EXAMPLES, "ns1", "a").expect("it is there");
    stage.server.delete(EXAMPLES, "ns1", "b").expect("it is there");
    seconds(5).await;
    stage.swap(&lines(2)).await;
    // Somebody else is faster: the object is gone before the finalizer can be removed.
    stage.server.remove(EXAMPLES, "ns1", "b").expect("it is there");
    seconds(30).await;
    let expected = ["a begins", "a ends", "b begins", "b ends"];
    assert_eq!(stage.end().await.take(), expected.map(|it| format!("deleted.1@1 {it}")));
}
