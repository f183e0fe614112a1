//! Declarations, filters, load errors, variables of the script.

use serde_json::json;

use super::{Fixture, refusal, try_load};
use crate::logic::{
    change::filters::{Place, Question},
    handlers::handler::{Callback, Criterion, Handler, Kind},
};

async fn declared(text: &str) -> Vec<Handler> {
    try_load(text).await.unwrap_or_else(|error| panic!("{error:?}")).handlers
}

#[tokio::test]
async fn every_spelling_declares() {
    let text = r#"
        fn create_fn(ctx) {}
        kopf::on_create("things", create_fn);
        kopf.on_create("kopf.dev/v1", "things", #{ id: "b" }, create_fn);
        kopf::on::update("things", Fn("create_fn"));
        kopf.on.delete("kopf.dev", "v1", "things", #{ optional: true }, |ctx| {});
        fn more() { kopf.on_resume("things", create_fn); kopf::on_event(kopf.EVERYTHING, create_fn); }
        more();
        kopf::on_startup(create_fn);
    "#;
    let handlers = declared(text).await;
    let found: Vec<_> = handlers.iter().map(|it| (it.kind, &*it.id, &*it.location)).collect();
    assert_eq!(
        found,
        [
            (Kind::Create, "create_fn", "handlers.rhai:3"),
            (Kind::Create, "b", "handlers.rhai:4"),
            (Kind::Update, "create_fn", "handlers.rhai:5"),
            (Kind::Delete, "delete", "handlers.rhai:6"),
            (Kind::Resume, "create_fn", "handlers.rhai:7"),
            (Kind::Event, "create_fn", "handlers.rhai:7"),
            (Kind::Startup, "create_fn", "handlers.rhai:9"),
        ]
    );
    assert_eq!(handlers[0].function, handlers[2].function);
    assert_ne!(handlers[0].function, handlers[3].function);
}

#[tokio::test]
async fn options_take_markers_and_functions() {
    let text = r#"
        kopf::on_update("things", #{
            labels: #{ a: kopf.PRESENT, b: kopf::ABSENT, c: "d" },
            when: kopf.all_([|ctx| true, kopf::not_(|ctx| false)]),
            errors: kopf::ErrorsMode::PERMANENT,
            retries: 3,
        }, |ctx| {});
    "#;
    let handlers = declared(text).await;
    let filters = &handlers[0].filters;
    assert_eq!(filters.labels[0], ("a".into(), Criterion::Present));
    assert_eq!(filters.labels[1], ("b".into(), Criterion::Absent));
    assert_eq!(filters.labels[2], ("c".into(), Criterion::Equals(json!("d"))));
    assert!(matches!(&filters.when, Some(Callback::All(both)) if both.len() == 2));
    assert_eq!(handlers[0].limits.retries, Some(3));
}

#[tokio::test]
async fn filters_are_asked_with_a_value_or_without() {
    let text = r#"
        kopf::on_create("things", #{
            labels: #{ a: |value, ctx| value == ctx.name, b: |value| value == () },
            when: |ctx| ctx.spec.x == 1,
        }, |ctx| {});
    "#;
    let body = json!({ "metadata": { "name": "n" }, "spec": { "x": 1 } });
    let fixture = Fixture::new(text, body).await;
    let handler = fixture.nth(0);
    let callback = |criterion: &Criterion| {
        let Criterion::Callback(Callback::Function(function)) = criterion else {
            panic!("{criterion:?}");
        };
        function.clone()
    };
    let a = callback(&handler.filters.labels[0].1);
    let b = callback(&handler.filters.labels[1].1);
    let Some(Callback::Function(when)) = handler.filters.when.clone() else { panic!() };
    for (function, about, expected) in [
        (a.clone(), Some(Some(json!("n"))), true),
        (a, Some(Some(json!("m"))), false),
        (b, Some(None), true),
        (when, None, true),
    ] {
        let invocation = fixture.invocation(handler.clone());
        let answer = fixture
            .loaded
            .engine
            .ask(Question { function, about, place: Box::new(Place::Object) }, invocation)
            .await;
        assert_eq!(answer, Ok(expected));
    }
}

#[tokio::test]
async fn a_wrong_option_is_told_with_its_line() {
    let error = refusal("let x = 1;\nkopf::on_create(\"things\", #{ retrys: 3 }, |ctx| {});").await;
    assert_eq!((error.file.as_str(), error.line), ("handlers.rhai", Some(2)));
    assert_eq!(
        error.source_line.as_deref(),
        Some("kopf::on_create(\"things\", #{ retrys: 3 }, |ctx| {});")
    );
    assert!(error.message.contains("retrys"), "{}", error.message);
    assert!(error.hint.is_some_and(|it| it.contains("retries")));
}

#[tokio::test]
async fn a_syntax_error_is_told_as_a_compiler_does() {
    let error = refusal("fn ok() {}\nlet x = ;\n").await;
    assert_eq!(error.line, Some(2));
    assert_eq!(error.source_line.as_deref(), Some("let x = ;"));
}

#[tokio::test]
async fn an_error_at_the_top_level_is_told_where_it_happens() {
    let error = refusal("fn deep() { throw \"no\"; }\n\ndeep();").await;
    assert_eq!((error.line, error.message.as_str()), (Some(1), "no"));
}

#[tokio::test]
async fn variables_of_the_script_are_shared_with_its_functions() {
    let text = r#"
        const STEP = 2;
        let count = 0;
        fn label() { `every ${STEP}` }
        let text = label();
        kopf::on_create("things", |ctx| { count += STEP; count });
        kopf::on_update("things", update);
        fn update(ctx) { count += 1; [count, text, STEP] }
    "#;
    let fixture = Fixture::new(text, json!({})).await;
    assert_eq!(fixture.returned().await, json!(2));
    assert_eq!(fixture.returned().await, json!(4));
    let ended = fixture.call_nth(1).await;
    let expected =
        crate::logic::handlers::outcome::CallEnd::Returned(Some(json!([5, "every 2", 2])));
    assert_eq!(ended, expected);
}

#[tokio::test]
async fn a_constant_stays_constant_in_functions() {
    let text = "const X = 1; fn handler(ctx) { X = 2; } kopf::on_create(\"things\", handler);";
    let raised = Fixture::new(text, json!({})).await.raised().await;
    assert!(raised.message.contains("constant"), "{}", raised.message);
}

#[tokio::test]
async fn the_top_level_may_return_early() {
    let text = "kopf::on_startup(|ctx| {}); if true { return; } kopf::on_cleanup(|ctx| {});";
    assert_eq!(declared(text).await.len(), 1);
}

#[tokio::test]
async fn a_function_of_the_script_that_hides_one_of_kopf_is_refused() {
    let error = refusal("fn fail(text) {\n    kopf.fail(text);\n}").await;
    assert_eq!(error.message, "`kopf.fail(…)` would call the function `fail` of this script");
    assert_eq!(error.hint.as_deref(), Some("write `kopf::fail(…)`, or rename the function"));
    assert_eq!(error.line, Some(2));
}

#[tokio::test]
async fn a_function_with_a_name_of_kopf_is_fine_where_the_calls_differ() {
    let text = "fn fail(ctx) { kopf::fail(ctx.name); }\nfn get(ctx) { kopf.get(ctx.spec, \"x\") }\n\
                kopf.on_create(\"x\", fail);";
    assert!(try_load(text).await.is_ok());
}
