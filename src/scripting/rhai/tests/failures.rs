//! Errors that a handler does not catch, and limits that abort it.

use std::time::Duration;

use serde_json::json;

use super::{Fixture, run_with_budget, try_load};
use crate::logic::handlers::outcome::RaisedKind;

const TOO_DEEP: &str = "calls are nested deeper than 200 levels (settings.sandbox.call_depth)";

async fn kind(code: &str) -> (RaisedKind, String) {
    let raised = Fixture::handler(code, json!({})).await.raised().await;
    (raised.kind, raised.message)
}

#[tokio::test]
async fn a_wrong_call_of_a_library_is_told_in_our_words_however_many_arguments_it_has() {
    for (code, told) in [
        ("json.decod(\"1\");", "there is no json.decod; did you mean `json.decode`?"),
        (
            "json.decode(\"1\", 2, 3);",
            "json.decode: too many arguments, 3: expected json.decode(text)",
        ),
        (
            "json.decode(\"1\", 2, [3, 4], #{ a: 5 }, 6, 7, 8);",
            "json.decode: too many arguments, 7: expected json.decode(text)",
        ),
        (
            "json::decode(\"1\", 2, 3, 4, 5, 6, 7);",
            "json.decode: too many arguments, 7: expected json.decode(text)",
        ),
    ] {
        assert_eq!(kind(code).await.1, told, "{code}");
    }
}

#[tokio::test]
async fn a_trace_names_file_line_source_and_function() {
    let text = "fn deep() {\n  throw \"no\";\n}\nfn handler(ctx) {\n  deep();\n}\nkopf::on_create(\"things\", handler);";
    let raised = Fixture::new(text, json!({})).await.raised().await;
    assert_eq!(
        raised.trace.as_deref(),
        Some(
            "handlers.rhai:2:3: no\n    throw \"no\";\nstack traceback:\n    handlers.rhai:2 function deep\n    handlers.rhai:5 function handler"
        )
    );
}

#[tokio::test]
async fn a_runaway_call_is_aborted_and_cannot_catch_it() {
    let text = "fn handler(ctx) { loop { try { loop {} } catch { } } }\nkopf::on_create(\"things\", handler);";
    let loaded = run_with_budget(text, 10_000).await.unwrap_or_else(|error| panic!("{error:?}"));
    let fixture = Fixture::of(loaded, json!({}));
    for _ in 0..2 {
        let raised = fixture.raised().await;
        assert_eq!(raised.kind, RaisedKind::Aborted(Some(Duration::from_mins(1))));
        assert!(raised.message.contains("more than 0.001 s"), "{}", raised.message);
    }
}

#[tokio::test]
async fn an_abort_inside_a_comparison_is_not_swallowed() {
    let text =
        "kopf::on_create(\"things\", |ctx| { let x = [2, 1, 3]; x.sort(|a, b| { loop {} }); 1 });";
    let loaded = run_with_budget(text, 10_000).await.unwrap_or_else(|error| panic!("{error:?}"));
    let raised = Fixture::of(loaded, json!({})).raised().await;
    assert!(matches!(raised.kind, RaisedKind::Aborted(_)), "{raised:?}");
}

#[tokio::test]
async fn a_runaway_top_level_is_refused() {
    let error = run_with_budget("loop {}", 10_000).await.err().unwrap();
    assert!(error.message.contains("used more than 0.001 s"), "{error:?}");
}

#[tokio::test]
async fn endless_recursion_and_growth_are_errors() {
    let text = "fn f(x) { f(x) } kopf::on_create(\"things\", |ctx| f(1));";
    let raised = Fixture::new(text, json!({})).await.raised().await;
    assert_eq!(raised.message, TOO_DEEP);
    let (_, message) = kind("let s = \"x\"; loop { s += s; }").await;
    assert_eq!(message, "a string would be longer than 4 MiB (settings.sandbox.string_size)");
}

#[tokio::test]
async fn a_value_inside_itself_is_refused() {
    let code = "let x = #{}; for i in 0..200 { x = #{ x: x }; } x";
    let (_, message) = kind(code).await;
    assert!(message.contains("128 levels"), "{message}");
}

#[tokio::test]
async fn the_deepest_recursion_fits_the_stack() {
    for (open, close) in
        [("[", "]"), ("if true { ", " }"), ("[1].map(|y| ", ")"), ("1 + (2 * (", "))")]
    {
        // As deep as the parser allows, at every level of calls.
        for depth in (0..32).rev() {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let text = format!("fn f(x) {{ {open}f(x){close} }} kopf::on_startup(|ctx| f(1));");
            if let Ok(loaded) = try_load(&text).await {
                let raised = Fixture::of(loaded, json!({})).raised().await;
                assert_eq!(raised.message, TOO_DEEP, "{text}");
                break;
            }
            assert!(depth > 0, "{text}");
        }
    }
}
