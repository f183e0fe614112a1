//! The operator's own handlers, and what else a swap must get along with.

use kopf::{logic::handler::Kind, ports::Rejection};

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
    let first = stage.send(&[slow.clone()], None).await;
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
