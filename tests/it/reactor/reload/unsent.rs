//! Changes that the server has not accepted when their handler is edited.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kopf::{
    logic::handlers::{handler::Kind, lifecycle::Lifecycle},
    reactor::Operator,
    testing::{self, Environment, Fate, Link},
};
use serde_json::{Value, json};

use super::edited::{Does, EXAMPLES, Edited, Line, environment, on, pass};

/// Returns a handler that labels its object with its code.
fn labels(id: &'static str, code: u64) -> Line {
    on(Kind::Create, id, code).does(Does::Label)
}

/// Returns an operator whose requests fail for a while after handlers were called.
async fn unsent(lines: &[Line]) -> Edited {
    let env = environment(&["a"], &[]);
    env.refuse(503, "PATCH", "kopfexamples");
    let change = |it: Operator| {
        // The client itself does not repeat requests.
        it.settings.lock().networking.error_backoffs.clear();
        Operator { lifecycle: Lifecycle::AllAtOnce, ..it }
    };
    let operator = Edited::with(env, lines, change);
    pass(10).await;
    operator
}

fn labels_of(operator: &Edited) -> Value {
    operator.env.get(EXAMPLES, "ns1/a")["metadata"]["labels"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_edited_handler_is_called_again_instead_and_others_are_not() {
    let mut operator = unsent(&[labels("made", 1), labels("beside", 1)]).await;
    assert_eq!(operator.take(), ["beside.1@1 a", "made.1@1 a"]);
    operator.swap(&[labels("made", 2), labels("beside", 1)]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert_eq!(operator.take(), ["made.2@2 a"]);
    assert_eq!(labels_of(&operator), json!({ "made": "2", "beside": "1" }));
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_leaves_nothing_behind() {
    let mut operator = unsent(&[labels("made", 1), labels("beside", 1)]).await;
    operator.take();
    operator.swap(&[labels("beside", 1)]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert!(operator.take().is_empty());
    assert_eq!(labels_of(&operator), json!({ "beside": "1" }));
    let object = operator.env.get(EXAMPLES, "ns1/a");
    assert_eq!(object["metadata"]["annotations"]["kopf.zalando.org/made"], Value::Null);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_script_that_is_loaded_again_without_an_edit_of_the_handler_keeps_them() {
    let mut operator = unsent(&[labels("made", 1)]).await;
    operator.take();
    operator.swap(&[labels("made", 1), on(Kind::Update, "other", 1).of("others")]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert!(operator.take().is_empty(), "it is recorded, and not called again");
    assert_eq!(labels_of(&operator), json!({ "made": "1" }));
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_comes_long_before_the_next_try_counts_too() {
    let mut operator = unsent(&[labels("made", 1)]).await;
    // A newer event comes first: what was left does not belong to it.
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    operator.swap(&[labels("made", 2)]).await;
    operator.swap(&[labels("made", 3)]).await;
    operator.env.server.clear_faults();
    operator.take();
    pass(100).await;
    assert_eq!(operator.take(), ["made.3@3 a"]);
    assert_eq!(labels_of(&operator), json!({ "made": "3" }));
    operator.end().await;
}

/// Returns a handler of each kind that labels its object, in these versions.
fn all_kinds(code: u64) -> [Line; 3] {
    let timer = on(Kind::Timer, "tick", code).does(Does::Label);
    let daemon = on(Kind::Daemon, "stay", code).does(Does::Label);
    [labels("made", code), timer.with("interval", 1000), daemon]
}

/// Returns an operator whose client repeats requests after the usual pauses: after 1, 2, 4, 7, 12, 20, 33 and 54 s.
async fn repeating(env: Environment, lines: &[Line]) -> Edited {
    if lines.iter().any(|it| it.kind != Kind::Create) {
        // Daemons and timers begin without a request.
        let finalizers = json!(["kopf.zalando.org/KopfFinalizerMarker"]);
        env.edit(EXAMPLES, "ns1/a", json!({ "metadata": { "finalizers": finalizers } }));
    }
    env.refuse(503, "PATCH", "kopfexamples");
    let operator =
        Edited::with(env, lines, |it| Operator { lifecycle: Lifecycle::AllAtOnce, ..it });
    // The next attempt would be after 33 s.
    pass(21).await;
    operator
}

#[tokio::test(start_paused = true)]
async fn an_edit_ends_the_pause_before_a_request_is_repeated() {
    for index in 0..3 {
        let line = |code| all_kinds(code)[index].clone();
        let mut operator = repeating(environment(&["a"], &[]), &[line(1)]).await;
        let id = line(1).id;
        assert_eq!(operator.take(), [format!("{id}.1@1 a")]);
        operator.env.server.clear_faults();
        operator.swap(&[line(2)]).await;
        assert_eq!(operator.take(), [format!("{id}.2@2 a")], "within a second");
        pass(100).await;
        assert_eq!(labels_of(&operator), json!({ id: "2" }));
        assert_eq!(operator.take(), [""; 0], "{id} is not called again");
        operator.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_replaced_daemon_or_timer_wanted_is_not_sent_afterwards() {
    for index in 1..3 {
        let line = |code| all_kinds(code)[index].clone();
        let mut operator = repeating(environment(&["a"], &[]), &[line(1)]).await;
        operator.swap(&[on(Kind::Event, "other", 1).of("others")]).await;
        operator.env.server.clear_faults();
        pass(100).await;
        assert_eq!(labels_of(&operator), Value::Null, "{}", line(1).id);
        operator.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_another_handler_keeps_what_daemons_and_timers_wanted() {
    for index in 1..3 {
        let line = || all_kinds(1)[index].clone();
        let mut operator = repeating(environment(&["a"], &[]), &[line(), labels("made", 1)]).await;
        operator.take();
        operator.env.server.clear_faults();
        operator.swap(&[line(), labels("made", 2)]).await;
        assert_eq!(operator.take(), ["made.2@2 a"]);
        pass(100).await;
        assert_eq!(labels_of(&operator), json!({ line().id: "1", "made": "2" }));
        operator.end().await;
    }
}

/// Returns an operator whose client gets no response to the first PATCH with records, which the server accepts, and sees events
/// only after an hour.
async fn unanswered(lines: &[Line]) -> Edited {
    let env = environment(&["a"], &[]);
    let link = Link::new(&env.server);
    link.lag(Duration::from_hours(1));
    let is_first = AtomicBool::new(true);
    link.set_rule(move |request| {
        let is_patch = request.method() == "PATCH" && request.uri().path().ends_with("/a");
        let is_lost = is_patch && is_first.swap(false, Ordering::Relaxed);
        if is_lost { Fate::LoseResponse } else { Fate::Pass }
    });
    let change = |it: Operator| {
        it.settings.lock().networking.error_backoffs.clear();
        let connect = testing::connect(link.client("ns1"));
        Operator { lifecycle: Lifecycle::AllAtOnce, connect, ..it }
    };
    let operator = Edited::with(env, lines, change);
    pass(10).await;
    operator
}

#[tokio::test(start_paused = true)]
async fn an_edited_handler_is_not_called_again_if_it_is_recorded_although_no_response_came() {
    // With the first one alone, the lost request ends the change; with both, it records one of them.
    let later = || on(Kind::Create, "later", 1).does(Does::Retry(1000));
    for others in [vec![], vec![later()]] {
        let lines = |code| [vec![labels("made", code)], others.clone()].concat();
        let mut operator = unanswered(&lines(1)).await;
        assert_eq!(operator.take().last().expect("calls"), "made.1@1 a");
        operator.swap(&lines(2)).await;
        pass(900).await;
        assert_eq!(operator.take(), [""; 0], "it is recorded");
        assert_eq!(labels_of(&operator), json!({ "made": "1" }));
        operator.end().await;
    }
}
