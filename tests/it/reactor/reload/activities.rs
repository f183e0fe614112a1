//! The handlers of the operator itself, and other conditions of a takeover.

use std::sync::Arc;

use kopf::{
    call::{Current, LiveGeneration, Memo},
    handling::activities::RepeatedActivity,
    logic::{
        change::registry::Registry,
        generation::Generation,
        handlers::{handler::Kind, outcome::CallEnd},
    },
    ports::{Clock, Rejection},
    reactor::Operator,
    settings::Settings,
    testing::{self, NativeScripts, declared},
};
use serde_json::json;

use super::edited::{Does, EXAMPLES, Edited, environment, object, on, pass};

#[tokio::test(start_paused = true)]
async fn start_up_handlers_run_again_only_if_they_were_edited() {
    let lines = |first, second| {
        [
            on(Kind::Startup, "first", first),
            on(Kind::Startup, "second", second),
            on(Kind::Event, "e", 1),
        ]
    };
    let mut operator = Edited::new(environment(&[], &[]), &lines(1, 1));
    pass(1).await;
    assert_eq!(operator.take(), ["first.1@1 startup", "second.1@1 startup"]);
    assert_eq!(operator.swap(&lines(1, 2)).await, "changed on_startup 'second'");
    assert_eq!(operator.take(), ["second.2@2 startup"]);
    assert_eq!(operator.swap(&lines(1, 2)).await, "no handler differs");
    assert!(operator.end().await.take_sorted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_start_up_handler_that_fails_for_good_leaves_the_old_generation_at_work() {
    let made = |code| on(Kind::Create, "made", code);
    let mut operator = Edited::new(environment(&[], &[]), &[made(1)]);
    pass(1).await;
    let failing = on(Kind::Startup, "begin", 1).does(Does::Fail);
    let answer = operator.send(&[failing, made(2)], None).await;
    let rejection = answer.await.expect("an answer").expect_err("it is rejected");
    assert_eq!(rejection, Rejection::Startup("startup failed: 'begin': on purpose".into()));
    operator.env.create(object("KopfExample", "a"));
    pass(1).await;
    assert_eq!(operator.take(), ["begin.1@2 startup fails", "made.1@1 a"]);
    operator.swap(&[made(3)]).await;
    operator.env.create(object("KopfExample", "b"));
    pass(1).await;
    assert_eq!(operator.end().await.take_sorted(), ["made.3@3 b"]);
}

#[tokio::test(start_paused = true)]
async fn while_start_up_handlers_run_the_old_generation_serves() {
    let made = |code| on(Kind::Create, "made", code);
    let mut operator = Edited::new(environment(&[], &[]), &[made(1)]);
    pass(1).await;
    let slow = on(Kind::Startup, "begin", 1).does(Does::Work(30));
    let mut answer = operator.send(&[slow, made(2)], None).await;
    pass(10).await;
    operator.env.create(object("KopfExample", "a"));
    pass(1).await;
    assert!(operator.calls.lines().contains(&"made.1@1 a".to_owned()));
    assert!(answer.try_recv().is_err(), "not decided yet");
    pass(30).await;
    assert!(answer.await.expect("an answer").is_ok());
    operator.env.create(object("KopfExample", "b"));
    pass(1).await;
    assert!(operator.end().await.lines().contains(&"made.2@2 b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_the_clean_up_handlers_of_the_present_generation_run() {
    let lines = |code| [on(Kind::Cleanup, "clean", code), on(Kind::Event, "e", 1)];
    let mut operator = Edited::new(environment(&[], &[]), &lines(1));
    pass(1).await;
    operator.swap(&lines(2)).await;
    assert_eq!(operator.end().await.take_sorted(), ["clean.2@2 cleanup"]);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_at_the_end_is_told_so() {
    let mut operator = Edited::new(environment(&[], &[]), &[on(Kind::Event, "e", 1)]);
    pass(1).await;
    let slow = on(Kind::Startup, "begin", 1).does(Does::Work(3000));
    let first = operator.send(std::slice::from_ref(&slow), None).await;
    pass(1).await;
    let second = operator.send(&[slow], None).await;
    operator.running.cancel();
    for answer in [first, second] {
        assert_eq!(answer.await.expect("an answer").expect_err("no time"), Rejection::Ending);
    }
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_not_resumed_again() {
    let lines = |code| [on(Kind::Resume, "resume", code), on(Kind::Create, "made", 1)];
    let env = environment(&["a"], &[]);
    let earlier = Edited::new(env.clone(), &lines(1));
    pass(1).await;
    assert_eq!(earlier.end().await.take_sorted(), ["made.1@1 a"]);
    let mut operator = Edited::new(env, &lines(1));
    pass(1).await;
    assert_eq!(operator.take(), ["resume.1@1 a"]);
    let mut with_more = lines(2).to_vec();
    with_more.push(on(Kind::Delete, "deleted", 1));
    operator.swap(&with_more).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 1, "it was looked at");
    assert!(operator.end().await.take_sorted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_start_up_handler_hold_from_the_swap_on_if_it_succeeds() {
    let made = on(Kind::Create, "made", 1);
    let deleted = on(Kind::Delete, "deleted", 1);
    let mut operator = Edited::new(environment(&["a"], &[]), std::slice::from_ref(&made));
    pass(1).await;
    let finalizers = |operator: &Edited, name: &str| {
        operator.env.server.get(EXAMPLES, "ns1", name).expect("it is there")["metadata"]["finalizers"]
            .clone()
    };
    let failing = on(Kind::Startup, "name", 1).does(Does::Name(true));
    let answer = operator.send(&[failing, made.clone(), deleted.clone()], None).await;
    assert!(answer.await.expect("an answer").is_err());
    operator.swap(&[made.clone(), deleted.clone()]).await;
    assert_eq!(finalizers(&operator, "a"), json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    let naming = on(Kind::Startup, "name", 2).does(Does::Name(false));
    operator.swap(&[naming, made, deleted]).await;
    operator.env.create(object("KopfExample", "b"));
    pass(1).await;
    assert_eq!(finalizers(&operator, "b"), json!(["example.com/named"]));
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_edited_as_well_and_leads_with_the_new_generation() {
    let replica = |name: &'static str| {
        move |operator: Operator| {
            operator.settings.lock().leadership.enabled = true;
            Operator { identity: testing::identity(name), ..operator }
        }
    };
    let lines = |code| [on(Kind::Create, "made", code), on(Kind::Index, "idx", code)];
    let env = environment(&["a"], &[]);
    let leader = Edited::with(env.clone(), &lines(1), replica("leader"));
    pass(1).await;
    let mut standby = Edited::with(env, &lines(1), replica("standby"));
    pass(5).await;
    standby.swap(&lines(2)).await;
    assert_eq!(standby.take(), ["idx.1@1 a", "idx.2@2 a"], "its indexes are kept warm");
    leader.end().await;
    standby.env.create(object("KopfExample", "b"));
    pass(20).await;
    let mut lines = standby.end().await.take_sorted();
    lines.retain(|it| it.starts_with("made"));
    assert_eq!(lines, ["made.2@2 b"]);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_paused_is_edited_as_well_and_goes_on_with_the_new_generation() {
    let peer = |name: &'static str, priority| {
        move |operator: Operator| {
            let mut settings = operator.settings.lock().clone();
            (settings.peering.clusterwide, settings.peering.priority) = (true, priority);
            *operator.settings.lock() = settings;
            Operator { identity: testing::identity(name), ..operator }
        }
    };
    let env = environment(&["a"], &["x"]);
    let peering = json!({ "metadata": { "name": "default" } });
    env.server.create("clusterkopfpeerings.kopf.dev", peering).expect("it is new");
    let lines = |code| {
        [on(Kind::Daemon, "stay", code), on(Kind::Event, "look", code).does(Does::Look("idx"))]
    };
    let mut operator = Edited::with(env.clone(), &lines(1), peer("weak", 0));
    pass(5).await;
    let stronger = Edited::with(env, &[on(Kind::Event, "e", 1).of("others")], peer("strong", 10));
    pass(5).await;
    let mut before = operator.take();
    before.retain(|it| it.starts_with("stay"));
    assert_eq!(before, ["stay.1@1 a begins", "stay.1@1 a ends: OPERATOR_PAUSING"]);
    let index = on(Kind::Index, "idx", 1).of("others");
    operator.swap(&[lines(2).as_slice(), &[index]].concat()).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(20).await;
    assert!(operator.take().is_empty());
    stronger.end().await;
    pass(20).await;
    let lines = operator.take();
    assert!(lines.contains(&"stay.2@2 a begins".to_owned()), "{lines:?}");
    assert!(lines.contains(&r#"look.2@2 a sees {"x":[1]}"#.to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|it| it.contains("@1")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn standing_activities_are_of_the_present_generation_and_logins_never_run_dry() {
    let scripts = NativeScripts::default();
    let generation = |kind, answer: &'static str| {
        let function = scripts.handler("fn", move |_| {
            Box::pin(async move { CallEnd::Returned(Some(answer.into())) })
        });
        let handler = declared(kind, Vec::new(), Vec::new(), function);
        let registry = Registry::new(vec![handler]).expect("one");
        LiveGeneration { generation: Generation::new(registry, None), ..LiveGeneration::default() }
    };
    for kind in [Kind::Probe, Kind::Login] {
        let first = generation(kind, "one");
        let at_start = first.generation.registry.activities(kind);
        let activity = RepeatedActivity {
            kind,
            current: Current::new(first),
            fallback: if kind == Kind::Login { at_start } else { Vec::new() },
            settings: Arc::default(),
            memo: Memo::default(),
            scripts: Arc::new(scripts.clone()),
            clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
            execution: Settings::default().execution,
        };
        let answers = async || {
            let results = activity.run().await.expect("none fails");
            results.into_values().collect::<Vec<_>>()
        };
        assert_eq!(answers().await, ["one"]);
        activity.current.set(generation(kind, "two"));
        assert_eq!(answers().await, ["two"]);
        activity.current.set(LiveGeneration::default());
        let left: &[&str] = if kind == Kind::Login { &["one"] } else { &[] };
        assert_eq!(answers().await, left);
    }
}
