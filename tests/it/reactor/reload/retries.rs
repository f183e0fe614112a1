//! An edit of a handler that waits for its retry takes effect at once.

use std::time::Duration;

use kopf::logic::handlers::handler::Kind;
use kopf_apiserver::{Fault, FaultEffect};

use super::edited::{Does, EXAMPLES, Edited, environment, object, on, pass};

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_retry_is_tried_at_once_when_it_is_edited() {
    let failing = |code| on(Kind::Create, "failing", code).does(Does::Retry(60));
    let mut operator = Edited::new(environment(&["a"], &[]), &[failing(1)]);
    pass(10).await;
    operator.swap(&[failing(2)]).await;
    let at = |part: &str| operator.calls.seconds_of(part);
    assert_eq!(
        (at("failing.1@1"), at("failing.2@2")),
        (vec![0], vec![10]),
        "its delay begins anew"
    );
    pass(60).await;
    assert_eq!(operator.calls.seconds_of("failing.2@2"), [10, 70]);
    operator.swap(&[on(Kind::Create, "failing", 3)]).await;
    assert_eq!(operator.calls.seconds_of("failing.3@3"), [71]);
    operator.swap(&[on(Kind::Create, "failing", 4)]).await;
    pass(100).await;
    assert!(
        operator.calls.seconds_of("failing.4@4").is_empty(),
        "who has ended is not called again"
    );
}

#[tokio::test(start_paused = true)]
async fn an_edit_counts_also_before_the_event_of_the_failed_attempt() {
    let failing = |code| on(Kind::Create, "failing", code).does(Does::Retry(60));
    let env = environment(&["a"], &[]);
    let late = FaultEffect::LateEvent(Duration::from_secs(3));
    env.server.fault(Fault::always(late).on("GET", "kopfexamples"));
    let mut operator = Edited::new(env, &[failing(1)]);
    pass(1).await;
    assert_eq!(operator.take(), ["failing.1@1 a fails"]);
    operator.swap(&[failing(2)]).await;
    pass(5).await;
    assert_eq!(operator.take(), ["failing.2@2 a fails"], "the record of the attempt has come back");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_others_leaves_the_delay_as_it_is_and_the_record_untouched() {
    let lines = |code| {
        let failing = on(Kind::Create, "failing", 1).does(Does::Retry(60));
        [failing, on(Kind::Create, "other", code).does(Does::Retry(90))]
    };
    let mut operator = Edited::new(environment(&["a"], &[]), &lines(1));
    pass(10).await;
    let before = operator.requests("kopfexamples");
    operator.swap(&[lines(1)[0].clone(), on(Kind::Update, "new", 1), lines(1)[1].clone()]).await;
    assert_eq!(patches(&operator.requests("kopfexamples")), patches(&before), "nobody was edited");
    operator.swap(&lines(2)).await;
    pass(100).await;
    let at = |part: &str| operator.calls.seconds_of(part);
    assert_eq!(at("failing"), [0, 60], "its delay goes on");
    assert_eq!((at("other.1"), at("other.2")), (vec![0], vec![11, 101]));
}

#[tokio::test(start_paused = true)]
async fn an_edit_counts_also_for_delays_of_an_earlier_process() {
    let failing = |code| on(Kind::Create, "failing", code).does(Does::Retry(600));
    let env = environment(&["a"], &[]);
    let earlier = Edited::new(env.clone(), &[failing(1)]);
    pass(5).await;
    earlier.end().await;
    let mut operator = Edited::new(env, &[failing(2)]);
    pass(5).await;
    assert!(
        operator.calls.lines().is_empty(),
        "which code has failed is not known: the delay goes on"
    );
    operator.swap(&[failing(3)]).await;
    assert_eq!(operator.take(), ["failing.3@2 a fails"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_retried_goes_on_with_an_edit() {
    let failing = |code| on(Kind::Delete, "failing", code).does(Does::Retry(600));
    let mut operator = Edited::new(environment(&[], &[]), &[failing(1)]);
    operator.env.create(object("KopfExample", "a"));
    pass(1).await;
    operator.env.delete(EXAMPLES, "ns1/a");
    pass(10).await;
    operator.swap(&[on(Kind::Delete, "failing", 2)]).await;
    assert_eq!(operator.take(), ["failing.1@1 a fails", "failing.2@2 a"]);
    assert!(operator.env.server.get(EXAMPLES, "ns1", "a").is_none());
}

fn patches(requests: &[String]) -> usize {
    requests.iter().filter(|it| it.starts_with("patch")).count()
}
