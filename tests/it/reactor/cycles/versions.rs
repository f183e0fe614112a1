//! A merge-patch of a status requires a version of the object: the cost of this, and its guarantees.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures::future::BoxFuture;
use kopf::{
    logic::handlers::{
        declare::Argument,
        handler::{Handler, Kind},
        outcome::CallEnd,
    },
    settings::Settings,
    testing::{EXAMPLES, Environment, Link, declared, handler_of_examples, object, pass},
};
use kopf_apiserver::{Fault, FaultEffect};
use serde_json::json;
use tokio::time;

use super::script::{Script, name, with_status};

/// Returns a handler that works for three seconds and returns a result.
fn slow_result(script: &Script, kind: Kind, id: &'static str) -> Handler {
    let calls = script.calls.clone();
    let function = script.functions.handler(id, move |invocation| {
        calls.add(format!("{id} {}", name(&invocation)));
        Box::pin(async {
            time::sleep(Duration::from_secs(3)).await;
            CallEnd::Returned(Some(json!("done")))
        }) as BoxFuture<'static, CallEnd>
    });
    handler_of_examples(kind, function)
}

/// Returns the methods and statuses of the requests about one object, in order.
fn requests(env: &Environment) -> Vec<String> {
    let all = env.requests("", "kopfexamples/").into_iter();
    let what = |path: &str| if path.ends_with("/status") { "status" } else { "object" };
    all.map(|it| format!("{} {} {}", it.method, what(&it.path), it.status)).collect()
}

/// Returns those of the requests about the status.
fn of_status(env: &Environment) -> Vec<String> {
    let all = env.requests("", "/status").into_iter();
    all.map(|it| format!("{} {}", it.method, it.status)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_version_costs_no_request_while_nobody_else_writes() {
    let (env, script) = (with_status(), Script::default());
    let handlers = vec![slow_result(&script, Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    pass(10).await;
    assert_eq!(requests(&env), ["PATCH status 200", "PATCH object 200"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_that_wait_already_cause_no_conflict() {
    let (env, script) = (with_status(), Script::default());
    let handlers = vec![slow_result(&script, Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    env.create(object("ns1", "a"));
    for number in 0..5 {
        time::sleep(Duration::from_millis(500)).await;
        env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": number } }));
    }
    pass(10).await;
    assert_eq!(env.get(EXAMPLES, "ns1/a")["status"]["made"], "done");
    assert_eq!(of_status(&env), ["PATCH 200"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_not_seen_yet_costs_two_requests_and_nothing_is_lost() {
    let (env, script) = (with_status(), Script::default());
    let handlers = vec![slow_result(&script, Kind::Create, "made")];
    let running = script.start(&env, (&Link::new(&env.server), handlers), Settings::default());
    pass(1).await;
    env.server.fault(Fault::always(FaultEffect::LateEvent(Duration::from_secs(5))).on("", "watch"));
    env.create(object("ns1", "a"));
    time::sleep(Duration::from_secs(7)).await;
    env.edit(EXAMPLES, "ns1/a", json!({ "spec": { "size": 1 }, "status": { "of": "others" } }));
    pass(20).await;
    let status = &env.get(EXAMPLES, "ns1/a")["status"];
    assert_eq!((&status["made"], &status["of"]), (&json!("done"), &json!("others")));
    let all = requests(&env);
    let first = ["PATCH status 409", "GET object 200", "PATCH status 200", "PATCH object 200"];
    assert_eq!(all[..4], first, "{all:?}");
    assert_eq!(of_status(&env), ["PATCH 409", "PATCH 200"]);
    assert_eq!(script.count("made a"), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_stores_results_often_has_no_conflicts_with_itself() {
    let (env, script) = (with_status(), Script::default());
    env.server.set_latency(Duration::from_secs(1));
    let ticks = AtomicU64::default();
    let function = script.functions.handler("tick", move |_| {
        let number = ticks.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { CallEnd::Returned(Some(json!(number))) })
            as BoxFuture<'static, CallEnd>
    });
    let interval = ("interval".to_owned(), Argument::Value(json!(0.3)));
    let kinds = vec![Argument::Value("kopfexamples".into())];
    let timer = declared(Kind::Timer, kinds, vec![interval], function);
    let running = script.start(&env, (&Link::new(&env.server), vec![timer]), Settings::default());
    env.create(object("ns1", "a"));
    pass(20).await;
    let all = of_status(&env);
    // The first result may conflict with the operator's own finalizer, which is being added.
    assert!(all.len() > 40 && all[1..].iter().all(|it| it == "PATCH 200"), "{all:?}");
    running.stop().await;
}
