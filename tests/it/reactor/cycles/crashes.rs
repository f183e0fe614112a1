//! `kill -9` between any two requests of an object's life, then a restart.
//!
//! Each run kills the operator at another PATCH: before the server receives it, or after it was applied and before the response
//! arrives. Recorded work must count, all other work must be done again, and nothing may be left behind.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::Method;
use kopf::testing::{self, Fate, Link, run_paused};
use serde_json::json;
use tokio::time;

use super::{
    run::ScenarioRun,
    scenario::{Scenario, example},
    transcript::Transcript,
};

/// The server never receives the request.
const BEFORE: Fate = Fate::Hang;
/// The server executes the request; the operator never receives the response.
const AFTER: Fate = Fate::LoseResponse;

/// Returns the life of an object: created with two handlers, one of them retried; updated; deleted.
fn life() -> Scenario {
    Scenario::parse(&json!({
        "handlers": [
            { "on": "create", "fn": "a", "do": [{ "result": 1 }] },
            { "on": "create", "fn": "b", "do": [{ "raises": ["TemporaryError", "later", { "delay": 3 }] }, {}] },
            { "on": "update", "fn": "u", "do": [{ "patch": { "status": { "seen": true } } }] },
            { "on": "delete", "fn": "d" },
        ],
        "actions": [
            [1, "create", example()],
            [20, "edit", "n1", { "spec": { "a": 2 } }],
            [40, "delete", "n1"],
        ],
        "until": 60,
    }))
}

/// Runs a scenario, and kills the operator at the `nth` PATCH, counted from one; the next operator survives.
async fn run_with_death(scenario: &Scenario, nth: usize, fate: Fate) -> Transcript {
    let run = ScenarioRun::new(scenario);
    let (link, left) = (Link::new(&run.env.server), AtomicUsize::new(nth));
    link.set_rule(move |request| {
        let is_deadly = request.method() == Method::PATCH
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                == Ok(1);
        if is_deadly { fate } else { Fate::Pass }
    });
    let mut running = Some(run.start(scenario, link.client("default")));
    let reaper = async {
        link.lost().await;
        drop(running.take());
        time::sleep(Duration::from_secs(1)).await;
        running = Some(run.start(scenario, testing::client(&run.env.server)));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = run.act_all(scenario, |_| {}) => {}
        () = reaper => {}
    }
    run.transcript()
}

fn transcript(scenario: &Scenario, nth: usize, fate: Fate) -> Transcript {
    run_paused(run_with_death(scenario, nth, fate))
}

/// Returns the handlers of calls, without repetitions.
fn handlers(calls: &[String]) -> Vec<&str> {
    let mut handlers = calls.iter().filter_map(|it| it.split('#').next()).collect::<Vec<_>>();
    handlers.dedup();
    handlers
}

#[test]
fn a_death_after_a_request_repeats_nothing_and_one_before_it_only_what_was_not_recorded() {
    let scenario = life();
    let undisturbed = transcript(&scenario, usize::MAX, BEFORE);
    let usual = undisturbed.attempts();
    assert_eq!(usual, ["a#0", "b#0", "b#1", "u#0", "d#0"]);
    assert!(undisturbed.objects.is_empty(), "the object is gone");
    for nth in 1..=undisturbed.patches.len() {
        for fate in [BEFORE, AFTER] {
            let transcript = transcript(&scenario, nth, fate);
            let seen = transcript.attempts();
            let at = format!("killed by {fate:?} at PATCH {nth}: {seen:?}");
            assert!(transcript.objects.is_empty(), "{at}: left behind {:?}", transcript.objects);
            if fate == AFTER {
                assert_eq!(seen, usual, "{at}: all was recorded");
            } else {
                // An attempt that was not recorded does not count, so its repetition may already succeed.
                assert_eq!(handlers(&seen), ["a", "b", "u", "d"], "{at}: in order, none left out");
                assert!(seen.len() <= usual.len() + 1, "{at}: one repetition at most");
            }
        }
    }
}
