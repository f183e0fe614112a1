//! Errors that leave a handler.

use std::time::Duration;

use expect_test::expect;
use kopf::logic::handlers::outcome::RaisedKind;
use serde_json::json;

use super::{eval, load, run, run_paused};

#[test]
fn handler_errors_keep_their_meaning() {
    let cases = [
        (
            "error(kopf.TemporaryError('not yet', 10))",
            RaisedKind::Temporary(Some(Duration::from_secs(10))),
            "not yet",
        ),
        (
            "error(kopf.TemporaryError('not yet'))",
            RaisedKind::Temporary(Some(Duration::from_mins(1))),
            "not yet",
        ),
        ("error(kopf.TemporaryError('now', kopf.null))", RaisedKind::Temporary(None), "now"),
        ("kopf.retry('again', '2m')", RaisedKind::Temporary(Some(Duration::from_mins(2))), "again"),
        ("error(kopf.PermanentError('never'))", RaisedKind::Permanent, "never"),
        ("kopf.fail('never')", RaisedKind::Permanent, "never"),
        ("error('boom')", RaisedKind::Arbitrary("Error".into()), "boom"),
        ("error('boom', 0)", RaisedKind::Arbitrary("Error".into()), "boom"),
        (
            "error({class = 'MyError', message = 'boom'})",
            RaisedKind::Arbitrary("MyError".into()),
            "boom",
        ),
        ("error({code = 1})", RaisedKind::Arbitrary("Error".into()), r#"{"code":1}"#),
        (
            "ctx.logger.info('x')",
            RaisedKind::Arbitrary("Error".into()),
            "info must be called with a colon: `:info(…)`",
        ),
        (
            "local x = nil; x.y = 1",
            RaisedKind::Arbitrary("Error".into()),
            "attempt to index nil with 'y'",
        ),
    ];
    for (body, kind, message) in cases {
        let raised = run(body).raised();
        assert_eq!((raised.kind, &*raised.message), (kind, message), "{body}");
    }
}

#[test]
fn a_trace_shows_the_line_and_the_stack() {
    let raised = run_paused(async {
        let script = load(
            "local function inner(x)\n    error('boom ' .. x)\nend\nfunction outer(ctx)\n    kopf.sleep(1)\n    inner(ctx.name)\nend\nkopf.on_create('x', outer)",
        )
        .await;
        script.call("outer").await.raised()
    });
    expect![[r"
        handlers.lua:2: boom example
            error('boom ' .. x)
        stack traceback:
            handlers.lua:2 function inner
            handlers.lua:6 function outer"]]
    .assert_eq(&raised.trace.expect("a trace"));
}

#[test]
fn errors_can_be_caught_and_looked_at() {
    let result = eval(
        r#"
        local ok, err = pcall(kopf.retry, "again", 10)
        local ok2, err2 = pcall(function() kopf.sleep(1); error("boom", 0) end)
        return {ok, tostring(err), err.message, err.delay, ok2, err2}
        "#,
    );
    assert_eq!(result, json!([false, "again", "again", 10, false, "boom"]));
}
