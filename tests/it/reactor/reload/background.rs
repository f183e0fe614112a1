//! Daemons and timers: those that keep running, restart, or stop.

use kopf::logic::handlers::handler::Kind;

use super::edited::{Does, EXAMPLES, Edited, environment, object, on, pass};

#[tokio::test(start_paused = true)]
async fn daemons_whose_handler_was_not_edited_go_on() {
    let stay = |code| [on(Kind::Daemon, "stay", 1), on(Kind::Create, "made", code)];
    let mut operator = Edited::new(environment(&["a"], &[]), &stay(1));
    pass(1).await;
    let before = operator.requests("kopfexamples");
    for code in 2..5 {
        operator.swap(&stay(code)).await;
    }
    assert_eq!(operator.requests("kopfexamples"), before);
    assert_eq!(operator.take(), ["made.1@1 a", "stay.1@1 a begins"]);
    assert_eq!(operator.end().await.take_sorted(), ["stay.1@1 a ends: OPERATOR_EXITING"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_was_edited_stops_and_starts_again_without_a_list() {
    let mut operator = Edited::new(environment(&["a", "b"], &[]), &[on(Kind::Daemon, "stay", 1)]);
    pass(1).await;
    let before = operator.requests("kopfexamples");
    assert_eq!(operator.swap(&[on(Kind::Daemon, "stay", 2)]).await, "changed daemon 'stay'");
    assert_eq!(operator.requests("kopfexamples"), before, "its objects are known");
    let lines = operator.take();
    let expected = [
        "stay.1@1 a begins",
        "stay.1@1 a ends: SCRIPT_RELOADED",
        "stay.1@1 b begins",
        "stay.1@1 b ends: SCRIPT_RELOADED",
        "stay.2@2 a begins",
        "stay.2@2 b begins",
    ];
    assert_eq!(lines, expected);
    operator.env.create(object("KopfExample", "c"));
    pass(1).await;
    assert_eq!(operator.take(), ["stay.2@2 c begins"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_needs_time_to_stop_is_waited_for() {
    let linger = |code| [on(Kind::Daemon, "slow", code).does(Does::Linger(7))];
    let mut operator = Edited::new(environment(&["a"], &[]), &linger(1));
    pass(1).await;
    operator.swap(&linger(2)).await;
    assert_eq!(operator.calls.lines(), ["slow.1@1 a begins"], "never two at once");
    pass(10).await;
    let ended = "slow.1@1 a ends: SCRIPT_RELOADED";
    assert_eq!(operator.calls.lines(), ["slow.1@1 a begins", ended, "slow.2@2 a begins"]);
    let times = (operator.calls.seconds_of("ends"), operator.calls.seconds_of("slow.2@2 a begins"));
    assert_eq!(times.0, times.1);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_does_not_stop_is_cancelled_and_replaced() {
    let stubborn = |code| {
        let line = on(Kind::Daemon, "slow", code).does(Does::Linger(1000));
        [line.with("cancellation_backoff", 2).with("cancellation_timeout", 3)]
    };
    let mut operator = Edited::new(environment(&["a"], &[]), &stubborn(1));
    pass(1).await;
    operator.swap(&stubborn(2)).await;
    pass(9).await;
    let lines = operator.calls.lines();
    assert_eq!(lines, ["slow.1@1 a begins", "slow.1@1 a is dropped", "slow.2@2 a begins"]);
}

#[tokio::test(start_paused = true)]
async fn a_timer_keeps_its_schedule_and_calls_the_function_of_the_new_generation() {
    let tick = |other| {
        let tick = on(Kind::Timer, "tick", 1).with("interval", 10);
        [tick, on(Kind::Create, "made", other)]
    };
    let mut operator = Edited::new(environment(&["a"], &[]), &tick(1));
    pass(14).await;
    operator.swap(&tick(2)).await;
    pass(20).await;
    let at = |part: &str| operator.calls.seconds_of(part);
    assert_eq!((at("tick.1@1"), at("tick.1@2")), (vec![0, 10], vec![20, 30]));
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_was_edited_starts_its_schedule_anew() {
    let tick = |code| [on(Kind::Timer, "tick", code).with("interval", 10)];
    let mut operator = Edited::new(environment(&["a"], &[]), &tick(1));
    pass(14).await;
    operator.swap(&tick(2)).await;
    pass(20).await;
    let at = |part: &str| operator.calls.seconds_of(part);
    assert_eq!((at("tick.1@1"), at("tick.2@2")), (vec![0, 10], vec![14, 24, 34]));
}

#[tokio::test(start_paused = true)]
async fn daemons_that_were_removed_do_not_come_back_and_hold_nothing() {
    let seen = on(Kind::Event, "seen", 1);
    let stay = on(Kind::Daemon, "stay", 1);
    let mut operator = Edited::new(environment(&["a"], &[]), &[seen.clone(), stay.clone()]);
    pass(1).await;
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 1);
    let lists = |operator: &Edited| {
        operator.requests("kopfexamples").iter().filter(|it| *it == "list").count()
    };
    let before = lists(&operator);
    operator.swap(std::slice::from_ref(&seen)).await;
    assert_eq!(lists(&operator), before);
    assert_eq!(operator.finalizers(EXAMPLES, "a"), 0);
    let of_daemon = |operator: &Edited| {
        let mut lines = operator.take();
        lines.retain(|it| it.starts_with("stay"));
        lines
    };
    assert_eq!(of_daemon(&operator), ["stay.1@1 a begins", "stay.1@1 a ends: SCRIPT_RELOADED"]);
    operator.edit(EXAMPLES, "a", 1);
    pass(60).await;
    assert!(of_daemon(&operator).is_empty());
    operator.swap(&[seen, stay]).await;
    assert_eq!(of_daemon(&operator), ["stay.1@3 a begins"]);
}

#[tokio::test(start_paused = true)]
async fn with_its_resource_a_daemon_goes_too() {
    let other = on(Kind::Create, "made", 1).of("others");
    let stay = on(Kind::Daemon, "stay", 1);
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[stay, other.clone()]);
    pass(1).await;
    operator.take();
    operator.swap(&[other]).await;
    assert_eq!(operator.take(), ["stay.1@1 a ends: SCRIPT_RELOADED"]);
}

#[tokio::test(start_paused = true)]
async fn who_has_ended_by_itself_stays_so_unless_it_was_edited() {
    let over = |code, other| {
        let over = on(Kind::Daemon, "over", code).does(Does::Nothing);
        [over, on(Kind::Create, "made", other)]
    };
    let mut operator = Edited::new(environment(&["a"], &[]), &over(1, 1));
    pass(1).await;
    operator.take();
    operator.swap(&over(1, 2)).await;
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    assert!(operator.take().is_empty());
    operator.swap(&over(2, 2)).await;
    assert_eq!(operator.take(), ["over.2@3 a"]);
    operator.swap(&over(2, 3)).await;
    operator.edit(EXAMPLES, "a", 2);
    pass(1).await;
    assert!(operator.end().await.take_sorted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_retried_is_retried_with_the_new_function() {
    let failing = |other| {
        let failing = on(Kind::Daemon, "failing", 1).does(Does::Retry(10));
        [failing, on(Kind::Create, "made", other)]
    };
    let mut operator = Edited::new(environment(&["a"], &[]), &failing(1));
    pass(14).await;
    operator.swap(&failing(2)).await;
    pass(10).await;
    let at = |part: &str| operator.calls.seconds_of(part);
    assert_eq!((at("failing.1@1"), at("failing.1@2")), (vec![0, 10], vec![20]));
}
