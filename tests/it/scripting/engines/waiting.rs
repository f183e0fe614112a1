//! Calls that wait concurrently.

use std::time::Duration;

use kopf::{
    call::{Scripts as _, SharedPatch},
    logic::{
        change::filters::{Place, Question},
        handlers::outcome::CallEnd,
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{eval, load, run, run_paused, sample};

#[test]
fn handlers_sleep_side_by_side() {
    run_paused(async {
        let script = load(
            "kopf.on_update('x', function(ctx) kopf.sleep(10); ctx.memo.n = (ctx.memo.n or 0) + 1; kopf.sleep('20s'); return ctx.memo.n end)",
        )
        .await;
        let began = Instant::now();
        let patch = SharedPatch::default();
        let call = || script.host.call(script.change("update", &sample(), &patch));
        let both = tokio::join!(call(), call());
        assert_eq!(began.elapsed().as_secs(), 30);
        assert_eq!(both, (CallEnd::Returned(Some(json!(2))), CallEnd::Returned(Some(json!(2)))));
    });
}

#[test]
fn waiting_works_in_coroutines_of_the_script() {
    let result = eval(
        r#"
        local co = coroutine.wrap(function() kopf.sleep(1); coroutine.yield("one"); kopf.sleep(1); return "two" end)
        local first, second = co(), co()
        local created = coroutine.create(function() kopf.sleep(1); return "three" end)
        local ok, third = coroutine.resume(created)
        return {first, second, ok, third}
        "#,
    );
    assert_eq!(result, json!(["one", "two", true, "three"]));
}

#[test]
fn waiting_inside_a_native_callback_is_told_in_our_words() {
    let raised = run("table.sort({2, 1}, function(a, b) kopf.sleep(1) return a < b end)").raised();
    assert_eq!(
        raised.message,
        "waiting is not possible inside a metamethod, table.sort or string.gsub"
    );
}

#[test]
fn a_thousand_sleepers_share_one_vm() {
    run_paused(async {
        let script =
            load("kopf.on_update('x', function(ctx) kopf.sleep(60) return true end)").await;
        let patch = SharedPatch::default();
        let calls = (0..1000).map(|_| script.host.call(script.change("update", &sample(), &patch)));
        let began = Instant::now();
        let all = futures::future::join_all(calls).await;
        assert!(all.iter().all(|it| *it == CallEnd::Returned(Some(Value::Bool(true)))));
        assert_eq!(began.elapsed().as_secs(), 60);
    });
}

#[test]
fn filters_are_asked_about_a_value_or_the_object() {
    run_paused(async {
        let script = load(
            r#"
            kopf.on_update("x", {
                labels = {app = function(value, ctx) return value == "demo" and ctx.name == "example" end},
                when = function(ctx) return ctx.retry end,
            }, function(ctx) end)
            "#,
        )
        .await;
        let handler = script.handler("update");
        let kopf::logic::handlers::handler::Criterion::Callback(
            kopf::logic::handlers::handler::Callback::Function(function),
        ) = &handler.filters.labels[0].1
        else {
            panic!("a function")
        };
        let patch = SharedPatch::default();
        let ask = |value: Option<Value>| {
            let question = Question {
                function: function.clone(),
                about: Some(value),
                place: Box::new(Place::Object),
            };
            script.host.ask(question, script.change("update", &sample(), &patch))
        };
        assert_eq!(ask(Some(json!("demo"))).await, Ok(true));
        assert_eq!(ask(Some(json!("other"))).await, Ok(false));
        assert_eq!(ask(None).await, Ok(false));
    });
}

#[test]
fn a_replaced_generation_finishes_its_calls() {
    run_paused(async {
        let script =
            load("kopf.on_update('x', function(ctx) kopf.sleep(60) return true end)").await;
        let patch = SharedPatch::default();
        let call = script.host.call(script.change("update", &sample(), &patch));
        drop(script);
        let ended = tokio::time::timeout(Duration::from_secs(100), call).await;
        assert_eq!(ended, Ok(CallEnd::Returned(Some(Value::Bool(true)))));
    });
}
