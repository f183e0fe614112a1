//! The operator's own handlers, and what else a swap must get along with.

use std::sync::Arc;

use kopf::{
    handling::activities::Standing,
    logic::{
        declare::{Declaration, declare},
        generation::Generation,
        handler::Kind,
        outcome::Ended,
        registry::Registry,
    },
    ports::{Clock, Current, Memo, Present, Rejection},
    reactor::Operator,
    settings::Settings,
    testing::{self, NativeScripts},
};
use serde_json::json;

use super::stage::{Does, EXAMPLES, Stage, object, on, seconds, server};

#[tokio::test(start_paused = true)]
async fn start_up_handlers_run_again_only_if_they_were_edited() {
    let lines = |first, second| {
        [
            on(Kind::Startup, "first", first),
            on(Kind::Startup, "second", second),
            on(Kind::Event, "e", 1),
        ]
    };
    let mut stage = Stage::new(server(&[], &[]), &lines(1, 1));
    seconds(1).await;
    assert_eq!(stage.notes.take(), ["first.1@1 startup", "second.1@1 startup"]);
    assert_eq!(stage.swap(&lines(1, 2)).await, "changed on_startup 'second'");
    assert_eq!(stage.notes.take(), ["second.2@2 startup"]);
    assert_eq!(stage.swap(&lines(1, 2)).await, "no handler differs");
    assert!(stage.end().await.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_start_up_handler_that_fails_for_good_leaves_the_old_generation_at_work() {
    let made = |code| on(Kind::Create, "made", code);
    let mut stage = Stage::new(server(&[], &[]), &[made(1)]);
    seconds(1).await;
    let failing = on(Kind::Startup, "begin", 1).does(Does::Fail);
    let answer = stage.send(&[failing, made(2)], None).await;
    let rejection = answer.await.expect("an answer").expect_err("it is rejected");
    assert_eq!(rejection, Rejection::Startup("startup failed: 'begin': on purpose".into()));
    stage.server.create(EXAMPLES, object("KopfExample", "a")).expect("it is new");
    seconds(1).await;
    assert_eq!(stage.notes.take(), ["begin.1@2 startup fails", "made.1@1 a"]);
    stage.swap(&[made(3)]).await;
    stage.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    seconds(1).await;
    assert_eq!(stage.end().await.take(), ["made.3@3 b"]);
}

#[tokio::test(start_paused = true)]
async fn while_start_up_handlers_run_the_old_generation_serves() {
    let made = |code| on(Kind::Create, "made", code);
    let mut stage = Stage::new(server(&[], &[]), &[made(1)]);
    seconds(1).await;
    let slow = on(Kind::Startup, "begin", 1).does(Does::Work(30));
    let mut answer = stage.send(&[slow, made(2)], None).await;
    seconds(10).await;
    stage.server.create(EXAMPLES, object("KopfExample", "a")).expect("it is new");
    seconds(1).await;
    assert!(stage.notes.lines().contains(&"made.1@1 a".to_owned()));
    assert!(answer.try_recv().is_err(), "not decided yet");
    seconds(30).await;
    assert!(answer.await.expect("an answer").is_ok());
    stage.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    seconds(1).await;
    assert!(stage.end().await.lines().contains(&"made.2@2 b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_the_clean_up_handlers_of_the_present_generation_run() {
    let lines = |code| [on(Kind::Cleanup, "clean", code), on(Kind::Event, "e", 1)];
    let mut stage = Stage::new(server(&[], &[]), &lines(1));
    seconds(1).await;
    stage.swap(&lines(2)).await;
    assert_eq!(stage.end().await.take(), ["clean.2@2 cleanup"]);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_at_the_end_is_told_so() {
    let mut stage = Stage::new(server(&[], &[]), &[on(Kind::Event, "e", 1)]);
    seconds(1).await;
    let slow = on(Kind::Startup, "begin", 1).does(Does::Work(3000));
    let first = stage.send(std::slice::from_ref(&slow), None).await;
    seconds(1).await;
    let second = stage.send(&[slow], None).await;
    stage.stop();
    for answer in [first, second] {
        assert_eq!(answer.await.expect("an answer").expect_err("no time"), Rejection::Ending);
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_not_resumed_again() {
    let lines = |code| [on(Kind::Resume, "resume", code), on(Kind::Create, "made", 1)];
    let server = server(&["a"], &[]);
    let earlier = Stage::new(server.clone(), &lines(1));
    seconds(1).await;
    assert_eq!(earlier.end().await.take(), ["made.1@1 a"]);
    let mut stage = Stage::new(server, &lines(1));
    seconds(1).await;
    assert_eq!(stage.notes.take(), ["resume.1@1 a"]);
    let mut with_more = lines(2).to_vec();
    with_more.push(on(Kind::Delete, "deleted", 1));
    stage.swap(&with_more).await;
    assert_eq!(stage.finalizers(EXAMPLES, "a"), 1, "it was looked at");
    assert!(stage.end().await.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_start_up_handler_hold_from_the_swap_on_if_it_succeeds() {
    let made = on(Kind::Create, "made", 1);
    let deleted = on(Kind::Delete, "deleted", 1);
    let mut stage = Stage::new(server(&["a"], &[]), std::slice::from_ref(&made));
    seconds(1).await;
    let finalizers = |stage: &Stage, name: &str| {
        stage.server.get(EXAMPLES, "ns1", name).expect("it is there")["metadata"]["finalizers"]
            .clone()
    };
    let failing = on(Kind::Startup, "name", 1).does(Does::Name(true));
    let answer = stage.send(&[failing, made.clone(), deleted.clone()], None).await;
    assert!(answer.await.expect("an answer").is_err());
    stage.swap(&[made.clone(), deleted.clone()]).await;
    assert_eq!(finalizers(&stage, "a"), json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    let naming = on(Kind::Startup, "name", 2).does(Does::Name(false));
    stage.swap(&[naming, made, deleted]).await;
    stage.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    seconds(1).await;
    assert_eq!(finalizers(&stage, "b"), json!(["example.com/named"]));
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
    let server = server(&["a"], &[]);
    let leader = Stage::with(server.clone(), &lines(1), replica("leader"));
    seconds(1).await;
    let mut standby = Stage::with(server, &lines(1), replica("standby"));
    seconds(5).await;
    standby.swap(&lines(2)).await;
    assert_eq!(standby.notes.take(), ["idx.1@1 a", "idx.2@2 a"], "its indexes are kept warm");
    leader.end().await;
    standby.server.create(EXAMPLES, object("KopfExample", "b")).expect("it is new");
    seconds(20).await;
    let mut lines = standby.end().await.take();
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
    let server = server(&["a"], &["x"]);
    let peering = json!({ "metadata": { "name": "default" } });
    server.create("clusterkopfpeerings.kopf.dev", peering).expect("it is new");
    let lines = |code| {
        [on(Kind::Daemon, "stay", code), on(Kind::Event, "look", code).does(Does::Look("idx"))]
    };
    let mut stage = Stage::with(server.clone(), &lines(1), peer("weak", 0));
    seconds(5).await;
    let stronger = Stage::with(server, &[on(Kind::Event, "e", 1).of("others")], peer("strong", 10));
    seconds(5).await;
    let mut before = stage.notes.take();
    before.retain(|it| it.starts_with("stay"));
    assert_eq!(before, ["stay.1@1 a begins", "stay.1@1 a ends: OPERATOR_PAUSING"]);
    let index = on(Kind::Index, "idx", 1).of("others");
    stage.swap(&[lines(2).as_slice(), &[index]].concat()).await;
    stage.edit(EXAMPLES, "a", 1);
    seconds(20).await;
    assert!(stage.notes.take().is_empty());
    stronger.end().await;
    seconds(20).await;
    let lines = stage.notes.take();
    assert!(lines.contains(&"stay.2@2 a begins".to_owned()), "{lines:?}");
    assert!(lines.contains(&r#"look.2@2 a sees {"x":[1]}"#.to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|it| it.contains("@1")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn standing_activities_are_of_the_present_generation_and_logins_never_run_dry() {
    let scripts = NativeScripts::default();
    let generation = |kind, answer: &'static str| {
        let function = scripts
            .handler("fn", move |_| Box::pin(async move { Ended::Returned(Some(answer.into())) }));
        let (selectors, options, location) = (Vec::new(), Vec::new(), "test:1".into());
        let handler = declare(Declaration { kind, selectors, options, function, location });
        let registry = Registry::new(vec![handler.expect("a declaration")]).expect("one");
        Present {
            generation: Generation { registry, ..Generation::default() },
            ..Present::default()
        }
    };
    for kind in [Kind::Probe, Kind::Login] {
        let first = generation(kind, "one");
        let at_start = first.generation.registry.activities(kind);
        let standing = Standing {
            kind,
            current: Current::new(first),
            otherwise: if kind == Kind::Login { at_start } else { Vec::new() },
            settings: Arc::default(),
            memo: Memo::default(),
            scripts: Arc::new(scripts.clone()),
            clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
            execution: Settings::default().execution,
        };
        let answers = async || {
            let results = standing.run().await.expect("none fails");
            results.into_values().collect::<Vec<_>>()
        };
        assert_eq!(answers().await, ["one"]);
        standing.current.set(generation(kind, "two"));
        assert_eq!(answers().await, ["two"]);
        standing.current.set(Present::default());
        let left: &[&str] = if kind == Kind::Login { &["one"] } else { &[] };
        assert_eq!(answers().await, left);
    }
}
