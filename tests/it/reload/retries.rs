//! An edit of a handler that waits for its retry takes effect at once.

use kopf::logic::handler::Kind;

use super::stage::{Does, EXAMPLES, Stage, object, on, seconds, server};

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_retry_is_tried_at_once_when_it_is_edited() {
    let failing = |code| on(Kind::Create, "failing", code).does(Does::Retry(60));
    let mut stage = Stage::new(server(&["a"], &[]), &[failing(1)]);
    seconds(10).await;
    stage.swap(&[failing(2)]).await;
    let at = |part: &str| stage.notes.times(part);
    assert_eq!(
        (at("failing.1@1"), at("failing.2@2")),
        (vec![0], vec![10]),
        "its delay begins anew"
    );
    seconds(60).await;
    assert_eq!(stage.notes.times("failing.2@2"), [10, 70]);
    stage.swap(&[on(Kind::Create, "failing", 3)]).await;
    assert_eq!(stage.notes.times("failing.3@3"), [71]);
    stage.swap(&[on(Kind::Create, "failing", 4)]).await;
    seconds(100).await;
    assert!(stage.notes.times("failing.4@4").is_empty(), "who has ended is not called again");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_others_leaves_the_delay_as_it_is_and_the_record_untouched() {
    let lines = |code| {
        let failing = on(Kind::Create, "failing", 1).does(Does::Retry(60));
        [failing, on(Kind::Create, "other", code).does(Does::Retry(90))]
    };
    let mut stage = Stage::new(server(&["a"], &[]), &lines(1));
    seconds(10).await;
    let before = stage.requests("kopfexamples");
    stage.swap(&[lines(1)[0].clone(), on(Kind::Update, "new", 1), lines(1)[1].clone()]).await;
    assert_eq!(patches(&stage.requests("kopfexamples")), patches(&before), "nobody was edited");
    stage.swap(&lines(2)).await;
    seconds(100).await;
    let at = |part: &str| stage.notes.times(part);
    assert_eq!(at("failing"), [0, 60], "its delay goes on");
    assert_eq!((at("other.1"), at("other.2")), (vec![0], vec![11, 101]));
}

#[tokio::test(start_paused = true)]
async fn an_edit_counts_also_for_delays_of_an_earlier_process() {
    let failing = |code| on(Kind::Create, "failing", code).does(Does::Retry(600));
    let server = server(&["a"], &[]);
    let earlier = Stage::new(server.clone(), &[failing(1)]);
    seconds(5).await;
    earlier.end().await;
    let mut stage = Stage::new(server, &[failing(2)]);
    seconds(5).await;
    assert!(
        stage.notes.lines().is_empty(),
        "which code has failed is not known: the delay goes on"
    );
    stage.swap(&[failing(3)]).await;
    assert_eq!(stage.notes.take(), ["failing.3@2 a fails"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_retried_goes_on_with_an_edit() {
    let failing = |code| on(Kind::Delete, "failing", code).does(Does::Retry(600));
    let mut stage = Stage::new(server(&[], &[]), &[failing(1)]);
    stage.server.create(EXAMPLES, object("KopfExample", "a")).expect("it is new");
    seconds(1).await;
    stage.server.delete(EXAMPLES, "ns1", "a").expect("it is there");
    seconds(10).await;
    stage.swap(&[on(Kind::Delete, "failing", 2)]).await;
    assert_eq!(stage.notes.take(), ["failing.1@1 a fails", "failing.2@2 a"]);
    assert!(stage.server.get(EXAMPLES, "ns1", "a").is_none());
}

fn patches(requests: &[String]) -> usize {
    requests.iter().filter(|it| it.starts_with("patch")).count()
}
