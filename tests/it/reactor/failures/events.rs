//! Events and metrics of handlers that fail.

use std::time::Duration;

use super::{Failing, Script, in_both};

/// `retried` fails three times, `given_up` fails permanently; the timer always fails.
const SCRIPT: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "retried" }, function(ctx)
            if ctx.retry < 3 then kopf.retry("not yet", 20) end
        end)
        kopf.on_create("kopfexamples", { id = "given_up" }, function() kopf.fail("never") end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "retried" }, |ctx| {
            if ctx.retry < 3 { kopf.retry("not yet", 20); }
        });
        kopf::on_create("kopfexamples", #{ id: "given_up" }, |ctx| kopf.fail("never"));
    "#,
};

/// Fails every second.
const TIMER: Script = Script {
    lua: r#"kopf.timer("kopfexamples", { interval = 1, backoff = 1, id = "tick" }, function() error("broken") end)"#,
    rhai: r#"kopf::timer("kopfexamples", #{ interval: 1, backoff: 1, id: "tick" }, |ctx| { throw "broken"; });"#,
};

/// Fails every 20 seconds.
const CROWD: Script = Script {
    lua: r#"kopf.timer("kopfexamples", { interval = 20, backoff = 20, id = "tick" }, function() error("broken") end)"#,
    rhai: r#"kopf::timer("kopfexamples", #{ interval: 20, backoff: 20, id: "tick" }, |ctx| { throw "broken"; });"#,
};

fn reasons(failing: &Failing) -> Vec<(String, u64)> {
    failing.events().into_iter().map(|(reason, count, _)| (reason, count)).collect()
}

fn found(events: &[(&str, u64)]) -> Vec<(String, u64)> {
    events.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
}

#[test]
fn a_failed_object_has_one_event_per_handler_with_a_count() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(15).await;
            assert_eq!(reasons(failing), found(&[("HandlerFailed", 1), ("HandlerGaveUp", 1)]));
            let events = failing.events();
            assert!(
                events[0].2.contains(
                    "'retried' failed temporarily (attempt 1), retrying in 20 s: not yet"
                ),
                "{events:?}"
            );
            assert!(
                events[1].2.contains("'given_up' failed permanently (attempt 1): never"),
                "{events:?}"
            );
            assert!(
                events[1].2.ends_with("(to try again: kopf retry kopfexample/a -n ns1)"),
                "{events:?}"
            );
            let event = failing.env.server.list("events").swap_remove(0);
            assert_eq!(
                (event["involvedObject"]["uid"].as_str(), event["type"].as_str()),
                (Some("a"), Some("Warning"))
            );
            let counts = [("given_up".to_owned(), 0, 1, 0), ("retried".to_owned(), 1, 0, 14)];
            let found_counts = failing.counts();
            assert_eq!(found_counts.len(), 2, "{found_counts:?}");
            assert_eq!(
                (found_counts[0].clone(), found_counts[1].1),
                (counts[0].clone(), counts[1].1)
            );
            failing.env.until(55).await;
            assert_eq!(reasons(failing), found(&[("HandlerFailed", 3), ("HandlerGaveUp", 1)]));
            failing.env.until(75).await;
            assert_eq!(failing.counts(), counts[..1], "a success ends the failure");
            failing.env.delete("kopfexamples.kopf.dev", "ns1/a");
            failing.env.until(80).await;
            assert_eq!(failing.counts(), [], "a deletion does, too");
        },
    );
}

#[test]
fn a_handler_that_always_fails_is_no_flood() {
    in_both(
        &TIMER,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(310).await;
            let events = failing.events();
            assert_eq!(events.len(), 1, "{events:?}");
            assert!((150..=310).contains(&events[0].1), "all failures count: {events:?}");
            let requests = failing.env.requests("", "/events").len();
            assert_eq!(requests, 5, "after 0, 10, 30, 70, 150 s");
        },
    );
}

#[test]
fn a_thousand_failing_objects_make_at_most_twenty_requests_a_second() {
    in_both(
        &CROWD,
        |_| {},
        async |failing: &Failing| {
            for number in 0..1000 {
                failing.create(&format!("a{number}"));
            }
            failing.env.until(60).await;
            assert_eq!(failing.events().len(), 1000, "all objects have their event");
            let start = failing.env.start;
            let requests = failing.env.requests("", "/events").into_iter();
            let times: Vec<_> = requests.map(|it| it.at.duration_since(start)).collect();
            for window in times.windows(21) {
                let took = window[20].saturating_sub(window[0]);
                assert!(took >= Duration::from_secs(1), "21 requests in {took:?}");
            }
            assert_eq!(failing.counts()[0].1, 1000);
        },
    );
}

#[test]
fn without_the_permission_it_is_said_once_and_nothing_else_changes() {
    in_both(
        &TIMER,
        |_| {},
        async |failing: &Failing| {
            failing.env.refuse(403, "POST", "/events");
            failing.create("a");
            failing.create("b");
            failing.env.until(300).await;
            assert_eq!(failing.log.count("Failures of handlers are not reported"), 1);
            assert_eq!(failing.env.requests("POST", "/events").len(), 1);
            assert!(failing.log.count("broken") > 100, "the timers keep running");
        },
    );
}

#[test]
fn an_expired_event_is_created_again() {
    in_both(
        &TIMER,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(5).await;
            let name = failing.env.server.list("events")[0]["metadata"]["name"].clone();
            failing.env.delete("events", &format!("ns1/{}", name.as_str().expect("a name")));
            failing.env.until(100).await;
            let events = failing.events();
            assert_eq!(events.len(), 1, "{events:?}");
        },
    );
}

#[test]
fn a_setting_turns_the_events_off() {
    in_both(
        &SCRIPT,
        |it| it.posting.failures = false,
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(100).await;
            assert_eq!((failing.events(), failing.counts().len()), (Vec::new(), 1));
        },
    );
}

#[test]
fn a_restart_knows_what_an_earlier_process_gave_up() {
    in_both(
        &SCRIPT,
        |_| {},
        async |failing: &Failing| {
            failing.create("a");
            failing.env.until(100).await;
            let script = ("fails.lua", SCRIPT.lua);
            let again = Failing::start(failing.env.clone(), script, |_| {}).await;
            failing.env.until(110).await;
            assert_eq!(again.counts(), [("given_up".to_owned(), 0, 1, 0)]);
            assert_eq!(again.events().len(), 2, "and posts it no second time");
            again.running.stop().await;
        },
    );
}
