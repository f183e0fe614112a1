//! Each object is passed once to handlers that are new or edited: by its worker, if it was busy with the object when they came, or
//! by the relist of the stream.

use std::time::Duration;

use kopf::logic::handlers::handler::Kind;
use kopf_apiserver::{Fault, FaultEffect};

use super::edited::{Does, EXAMPLES, Edited, Line, environment, on, pass};

/// Returns a handler that keeps its worker asleep for longer than the tests last.
fn failing() -> Line {
    on(Kind::Create, "failing", 1).does(Does::Retry(600))
}

/// Starts an operator with two objects whose workers sleep, in addition to the work of these handlers.
async fn asleep(lines: &[Line]) -> Edited {
    let all = [&[failing()], lines].concat();
    let operator = Edited::new(environment(&["a", "b"], &[]), &all);
    pass(1).await;
    operator.take();
    operator
}

/// Returns the calls after a takeover of these handlers, for a while.
async fn swapped(operator: &mut Edited, lines: &[Line]) -> Vec<String> {
    operator.swap(&[&[failing()], lines].concat()).await;
    pass(30).await;
    operator.take()
}

#[tokio::test(start_paused = true)]
async fn a_new_handler_of_events_is_called_once_for_an_object_whose_worker_sleeps() {
    let mut operator = asleep(&[]).await;
    let lines = swapped(&mut operator, &[on(Kind::Event, "more", 1)]).await;
    assert_eq!(lines, ["more.1@2 a", "more.1@2 b"]);
}

#[tokio::test(start_paused = true)]
async fn one_with_other_filters_too_and_one_with_other_code_not_at_all() {
    let seen = on(Kind::Event, "seen", 1);
    let mut operator = asleep(std::slice::from_ref(&seen)).await;
    let edited = swapped(&mut operator, &[on(Kind::Event, "seen", 2)]).await;
    assert!(edited.is_empty(), "{edited:?}");
    let filtered = on(Kind::Event, "seen", 3).with("field", "metadata.name");
    assert_eq!(swapped(&mut operator, &[filtered]).await, ["seen.3@3 a", "seen.3@3 b"]);
}

#[tokio::test(start_paused = true)]
async fn new_and_edited_indexes_take_an_object_once() {
    let mut operator = asleep(&[]).await;
    let lines = swapped(&mut operator, &[on(Kind::Index, "idx", 1)]).await;
    assert_eq!(lines, ["idx.1@2 a", "idx.1@2 b"]);
    let lines = swapped(&mut operator, &[on(Kind::Index, "idx", 2)]).await;
    assert_eq!(lines, ["idx.2@3 a", "idx.2@3 b"]);
}

#[tokio::test(start_paused = true)]
async fn new_and_edited_daemons_and_timers_begin_once() {
    let both = |code| {
        let tick = on(Kind::Timer, "tick", code).with("interval", 1000);
        [on(Kind::Daemon, "stay", code), tick]
    };
    let mut operator = asleep(&[]).await;
    let lines = swapped(&mut operator, &both(1)).await;
    let begun = ["stay.1@2 a begins", "stay.1@2 b begins", "tick.1@2 a", "tick.1@2 b"];
    assert_eq!(lines, begun);
    let lines = swapped(&mut operator, &both(2)).await;
    let ended = ["stay.1@2 a ends: SCRIPT_RELOADED", "stay.1@2 b ends: SCRIPT_RELOADED"];
    let begun = ["stay.2@3 a begins", "stay.2@3 b begins", "tick.2@3 a", "tick.2@3 b"];
    assert_eq!(lines, [&ended[..], &begun].concat());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_woken_and_has_gone_before_the_list_comes_is_remembered() {
    let mut operator = Edited::new(environment(&["a", "b"], &[]), &[failing()]);
    pass(1).await;
    operator.take();
    let late = FaultEffect::Latency(Duration::from_mins(1));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(1));
    // Its retry succeeds, so that nothing else remains to wait for.
    let mended = on(Kind::Create, "failing", 2);
    operator.swap(&[mended, on(Kind::Index, "idx", 1)]).await;
    pass(120).await;
    let mut lines = operator.take();
    lines.retain(|it| it.starts_with("idx"));
    // The patch of the creation causes another event.
    assert_eq!(lines, ["idx.1@2 a", "idx.1@2 a", "idx.1@2 b", "idx.1@2 b"]);
}

#[tokio::test(start_paused = true)]
async fn those_that_came_with_an_earlier_edit_are_not_called_again_by_the_look_of_the_next() {
    let mut operator = asleep(&[]).await;
    let (one, two) = (on(Kind::Event, "one", 1), on(Kind::Event, "two", 1));
    let late = FaultEffect::Latency(Duration::from_secs(10));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(2));
    operator.swap(&[failing(), one.clone()]).await;
    let lines = swapped(&mut operator, &[one, two]).await;
    assert_eq!(lines, ["one.1@2 a", "one.1@2 b", "two.1@3 a", "two.1@3 b"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_has_shown_some_objects_goes_on_with_the_others() {
    let other = |code| on(Kind::Create, "other", code);
    let mut operator = Edited::new(environment(&["a", "b"], &[]), &[other(1)]);
    pass(10).await;
    operator.take();
    let (one, two) = (on(Kind::Event, "one", 1), on(Kind::Event, "two", 1));
    let late = FaultEffect::Latency(Duration::from_secs(10));
    operator.env.server.fault(Fault::always(late).on("GET", "kopfexamples").times(2));
    operator.swap(&[other(1), one.clone()]).await;
    // The watch passes this one to the first of them.
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    operator.swap(&[other(1), one, two]).await;
    pass(30).await;
    // The edit of the object, and the patch that records it.
    let watched = ["one.1@2 a"; 2];
    assert_eq!(operator.take(), [&watched[..], &["one.1@3 b", "two.1@3 a", "two.1@3 b"]].concat());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_waits_behind_a_call_comes_to_the_new_handlers_once() {
    let slow = on(Kind::Event, "slow", 1).does(Does::Work(10));
    let mut operator = Edited::new(environment(&["a"], &[]), std::slice::from_ref(&slow));
    pass(1).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    operator.swap(&[slow, on(Kind::Event, "more", 1)]).await;
    pass(60).await;
    let lines = operator.take().into_iter().filter(|it| it.starts_with("more"));
    // Once when the call ends, as something new; once for what happened before and was not handled yet.
    assert_eq!(lines.collect::<Vec<_>>(), ["more.1@2 a"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_new_index_when_the_next_edit_comes_is_not_indexed_again() {
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[on(Kind::Create, "made", 1)]);
    pass(10).await;
    operator.take();
    let late = FaultEffect::Latency(Duration::from_secs(8));
    operator.env.server.fault(Fault::always(late).on("GET", "others").times(4));
    let index = on(Kind::Index, "idx", 1);
    let waited = on(Kind::Index, "idx", 1).of("others");
    let seen = |code| on(Kind::Event, "seen", code);
    operator.swap(&[on(Kind::Create, "made", 1), index.clone(), waited.clone(), seen(1)]).await;
    operator.swap(&[on(Kind::Create, "made", 2), index, waited, seen(1)]).await;
    pass(60).await;
    let lines = operator.take().into_iter().filter(|it| it.starts_with("idx") && it.ends_with('a'));
    assert_eq!(lines.collect::<Vec<_>>(), ["idx.1@2 a"]);
}
