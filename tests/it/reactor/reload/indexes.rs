//! Indexes: those that keep their content, those that are filled again, and the handlers that wait for them.

use std::time::Duration;

use kopf::{logic::handlers::handler::Kind, telemetry::HealthState};
use kopf_apiserver::{Fault, FaultEffect};

use super::edited::{Does, EXAMPLES, Edited, Line, OTHERS, environment, object, on, pass};

fn looking(code: u64) -> Line {
    on(Kind::Event, "look", code).of("others").does(Does::Look("idx"))
}

/// Returns the output of `look` at the next change of an object.
async fn seen(operator: &Edited, number: u64) -> String {
    operator.take();
    operator.edit(OTHERS, "x", number);
    pass(1).await;
    let lines = operator.take();
    let line = lines.iter().find(|it| it.starts_with("look")).expect("it was called");
    line.split(" sees ").nth(1).expect("it has looked").to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_index_whose_handlers_were_not_edited_keeps_its_content() {
    let mut operator =
        Edited::new(environment(&["a", "b"], &["x"]), &[on(Kind::Index, "idx", 1), looking(1)]);
    pass(1).await;
    operator.take();
    let before = operator.requests("kopfexamples");
    operator.swap(&[on(Kind::Index, "idx", 1), looking(2)]).await;
    assert_eq!(operator.requests("kopfexamples"), before);
    assert!(operator.take().is_empty(), "nobody was called");
    assert_eq!(seen(&operator, 1).await, r#"{"a":[1],"b":[1]}"#);
    operator.env.create(object("KopfExample", "c"));
    pass(1).await;
    assert_eq!(operator.take(), ["idx.1@2 c"]);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_was_edited_serves_its_old_entries_until_they_are_replaced() {
    let lines = |code| [on(Kind::Index, "idx", code), looking(1)];
    let mut operator = Edited::new(environment(&["a", "b"], &["x"]), &lines(1));
    pass(1).await;
    let late = FaultEffect::Latency(Duration::from_secs(5));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(1));
    operator.swap(&lines(2)).await;
    assert_eq!(seen(&operator, 1).await, r#"{"a":[1],"b":[1]}"#);
    let part = operator.running.health.parts().remove("indexes").expect("the part of the indexes");
    assert_eq!(part.state, HealthState::Ready);
    assert!(
        part.text.contains("kopfexamples.v1.kopf.dev is not listed again yet"),
        "{}",
        part.text
    );
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    assert_eq!(seen(&operator, 2).await, r#"{"a":[2],"b":[1]}"#, "object by object");
    pass(5).await;
    assert_eq!(seen(&operator, 3).await, r#"{"a":[2],"b":[2]}"#);
    let part = operator.running.health.parts().remove("indexes").expect("the part of the indexes");
    assert_eq!(part.text, "complete");
    let watches = operator.requests("kopfexamples").iter().filter(|it| *it == "watch").count();
    assert_eq!(watches, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_what_the_old_handlers_put_in() {
    let of_others = on(Kind::Index, "idx", 1).of("others");
    let lines = [on(Kind::Index, "idx", 1), of_others, looking(1)];
    let mut operator = Edited::new(environment(&["a"], &["x"]), &lines);
    pass(1).await;
    assert_eq!(seen(&operator, 1).await, r#"{"a":[1],"x":[1]}"#);
    // The handler of one resource is gone, that of the other returns nothing.
    operator.swap(&[on(Kind::Index, "idx", 0), looking(1)]).await;
    pass(1).await;
    assert_eq!(seen(&operator, 2).await, "{}");
    operator.swap(&[looking(1)]).await;
    assert_eq!(seen(&operator, 3).await, "nothing");
}

#[tokio::test(start_paused = true)]
async fn a_new_index_is_complete_before_new_handlers_look_and_nobody_else_waits() {
    let other = on(Kind::Event, "other", 1).of("others");
    let kept = on(Kind::Event, "kept", 1);
    let mut operator =
        Edited::new(environment(&["a", "b"], &["x"]), &[other.clone(), kept.clone()]);
    pass(1).await;
    operator.take();
    let late = FaultEffect::Latency(Duration::from_secs(5));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(1));
    operator.swap(&[other, kept, on(Kind::Index, "idx", 1), looking(1)]).await;
    operator.edit(OTHERS, "x", 1);
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    // `a` is indexed by its own event; the stream of `others` has a new handler, that of the examples has none.
    assert_eq!(operator.take(), ["idx.1@2 a", "kept.1@2 a"]);
    pass(5).await;
    let lines = operator.take();
    assert!(lines.contains(&"idx.1@2 b".to_owned()), "{lines:?}");
    assert!(lines.contains(&"other.1@2 x".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|it| it == r#"look.1@2 x sees {"a":[1],"b":[1]}"#), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_index_that_cannot_be_filled_keeps_nobody_waiting_for_long() {
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[on(Kind::Event, "seen", 1)]);
    pass(1).await;
    operator.env.refuse(403, "GET", "kopfexamples");
    let index = on(Kind::Index, "idx", 1);
    operator.swap(&[on(Kind::Event, "seen", 1), index, looking(1)]).await;
    operator.edit(OTHERS, "x", 1);
    pass(5).await;
    operator.take();
    pass(10).await;
    let lines = operator.take();
    assert!(lines.iter().any(|it| it == "look.1@2 x sees {}"), "{lines:?}");
    operator.env.server.clear_faults();
    pass(60).await;
    assert_eq!(seen(&operator, 2).await, r#"{"a":[1]}"#);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_failed_for_good_is_tried_again_when_it_was_edited() {
    let failing = on(Kind::Index, "idx", 1).does(Does::Fail);
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[failing, looking(1)]);
    pass(1).await;
    assert_eq!(seen(&operator, 1).await, "{}");
    operator.swap(&[on(Kind::Index, "idx", 2), looking(1)]).await;
    assert_eq!(seen(&operator, 2).await, r#"{"a":[2]}"#);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_waits_for_a_retry_does_not_keep_new_handlers_from_a_new_index() {
    let failing = on(Kind::Create, "failing", 1).does(Does::Retry(600));
    let look = on(Kind::Event, "look", 1).does(Does::Look("idx"));
    let mut operator = Edited::new(environment(&["a", "b"], &[]), std::slice::from_ref(&failing));
    pass(1).await;
    operator.take();
    operator.swap(&[failing, on(Kind::Index, "idx", 1), look]).await;
    let mut lines = operator.take();
    lines.retain(|it| it.starts_with("look"));
    let seen = r#"sees {"a":[1],"b":[1]}"#;
    assert_eq!(lines, ["a", "b"].map(|it| format!("look.1@2 {it} {seen}")), "nobody waits");
}
