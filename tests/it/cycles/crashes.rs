//! `kill -9` between any two requests of an object's life, then a restart.
//!
//! Each run kills the operator at another PATCH: before the server sees it, or after it was applied and before the answer
//! arrives. What was recorded must count, what was not must be done again, and nothing may be left behind.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kopf_apiserver::{ApiServer, ResponseBody};
use kube::client::Body;
use serde_json::json;
use tokio::{sync::Notify, time};
use tower::Service;

use super::{scenario::Scenario, stage::Stage, transcript::Transcript};

/// When the operator dies, as seen from the request it dies at.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    /// The server never sees the request.
    Before,
    /// The server has done what was asked; the operator never learns of it.
    After,
}

/// A connection that kills its operator at one PATCH.
#[derive(Clone)]
struct Deadly {
    server: ApiServer,
    /// Counts down to the deadly one.
    left: Arc<AtomicUsize>,
    blow: Blow,
    fallen: Arc<Notify>,
}

impl Service<Request<Body>> for Deadly {
    type Response = Response<ResponseBody>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_deadly = request.method() == Method::PATCH
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                == Ok(1);
        let (mut server, blow, fallen) = (self.server.clone(), self.blow, Arc::clone(&self.fallen));
        Box::pin(async move {
            if !is_deadly {
                return server.call(request).await;
            }
            if blow == Blow::After {
                drop(server.call(request).await);
            }
            fallen.notify_one();
            std::future::pending().await
        })
    }
}

/// The life of an object: created with two handlers, one of them retried; updated; deleted.
fn life() -> Scenario {
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "name": "n1", "namespace": "ns1", "uid": "uid-n1" }, "spec": { "a": 1 },
    });
    Scenario::parse(&json!({
        "handlers": [
            { "on": "create", "fn": "a", "do": [{ "result": 1 }] },
            { "on": "create", "fn": "b", "do": [{ "raises": ["TemporaryError", "later", { "delay": 3 }] }, {}] },
            { "on": "update", "fn": "u", "do": [{ "patch": { "status": { "seen": true } } }] },
            { "on": "delete", "fn": "d" },
        ],
        "actions": [
            [1, "create", object],
            [20, "edit", "n1", { "spec": { "a": 2 } }],
            [40, "delete", "n1"],
        ],
        "until": 60,
    }))
}

/// Plays it, with a death at the `nth` PATCH, counted from one; the next operator lives.
async fn play(scenario: &Scenario, nth: usize, blow: Blow) -> Transcript {
    let stage = Stage::new(scenario);
    let fallen = Arc::new(Notify::new());
    let deadly = Deadly {
        server: stage.server().service(),
        left: Arc::new(AtomicUsize::new(nth)),
        blow,
        fallen: Arc::clone(&fallen),
    };
    let mut running = Some(stage.raise(scenario, kube::Client::new(deadly, "default")));
    let users = async {
        for (at, action) in &scenario.actions {
            stage.until(*at).await;
            stage.act(action);
        }
        stage.until(scenario.until).await;
    };
    let reaper = async {
        fallen.notified().await;
        drop(running.take());
        time::sleep(Duration::from_secs(1)).await;
        running = Some(stage.raise(scenario, stage.server().client()));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = users => {}
        () = reaper => {}
    }
    stage.transcript()
}

fn played(scenario: &Scenario, nth: usize, blow: Blow) -> Transcript {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(play(scenario, nth, blow))
}

/// Handlers that were called, with their attempts: `a#0`.
fn calls(transcript: &Transcript) -> Vec<String> {
    let text = |it: &serde_json::Value| {
        format!("{}#{}", it["call"].as_str().unwrap_or_default(), it["retry"])
    };
    transcript.calls.iter().map(text).collect()
}

/// The handlers behind calls, without repetitions.
fn handlers(calls: &[String]) -> Vec<&str> {
    let mut handlers = calls.iter().filter_map(|it| it.split('#').next()).collect::<Vec<_>>();
    handlers.dedup();
    handlers
}

#[test]
fn a_death_after_a_request_repeats_nothing_and_one_before_it_only_what_was_not_recorded() {
    let scenario = life();
    let undisturbed = played(&scenario, usize::MAX, Blow::Before);
    let usual = calls(&undisturbed);
    assert_eq!(usual, ["a#0", "b#0", "b#1", "u#0", "d#0"]);
    assert!(undisturbed.objects.is_empty(), "the object is gone");
    for nth in 1..=undisturbed.patches.len() {
        for blow in [Blow::Before, Blow::After] {
            let transcript = played(&scenario, nth, blow);
            let seen = calls(&transcript);
            let at = format!("killed {blow:?} PATCH {nth}: {seen:?}");
            assert!(transcript.objects.is_empty(), "{at}: left behind {:?}", transcript.objects);
            match blow {
                Blow::After => assert_eq!(seen, usual, "{at}: all was recorded"),
                // An attempt that was not recorded does not count, so its repetition may already succeed.
                Blow::Before => {
                    assert_eq!(
                        handlers(&seen),
                        ["a", "b", "u", "d"],
                        "{at}: in order, none left out"
                    );
                    assert!(seen.len() <= usual.len() + 1, "{at}: one repetition at most");
                }
            }
        }
    }
}
