//! Errors that a handler does not catch.

use std::time::Duration;

use expect_test::expect;
use kopf::logic::handlers::outcome::RaisedKind;
use serde_json::json;

use super::{
    Language::{Lua, Rhai},
    load, run_paused,
};

#[test]
fn handler_errors_keep_their_meaning() {
    let secs = |it| RaisedKind::Temporary(Some(Duration::from_secs(it)));
    let error = || RaisedKind::Arbitrary("Error".into());
    let mine = || RaisedKind::Arbitrary("Mine".into());
    for (language, body, kind, message) in [
        (Lua, "error(kopf.TemporaryError('m', 10))", secs(10), "m"),
        (Rhai, "throw kopf.TemporaryError(`m`, 10);", secs(10), "m"),
        (Lua, "error(kopf.TemporaryError('m', '10m'))", secs(600), "m"),
        (Rhai, "throw kopf::TemporaryError(`m`, `10m`);", secs(600), "m"),
        (Lua, "error(kopf.TemporaryError('m'))", secs(60), "m"),
        (Lua, "error(kopf.TemporaryError('m', nil))", secs(60), "m"),
        (Rhai, "throw kopf.TemporaryError(`m`);", secs(60), "m"),
        (Lua, "error(kopf.TemporaryError('m', kopf.null))", RaisedKind::Temporary(None), "m"),
        (Rhai, "throw kopf.TemporaryError(`m`, ());", RaisedKind::Temporary(None), "m"),
        (Lua, "error(kopf.PermanentError('m'))", RaisedKind::Permanent, "m"),
        (Rhai, "throw kopf.PermanentError(`m`);", RaisedKind::Permanent, "m"),
        (Lua, "kopf.retry('m', '2m')", secs(120), "m"),
        (Rhai, "kopf.retry(`m`, `2m`);", secs(120), "m"),
        (Lua, "kopf.fail('m')", RaisedKind::Permanent, "m"),
        (Rhai, "kopf::fail(`m`);", RaisedKind::Permanent, "m"),
        (Rhai, "[1].map(|x| kopf.retry(`m`, 1));", secs(1), "m"),
        (Lua, "error('m')", error(), "m"),
        (Lua, "error('m', 0)", error(), "m"),
        (Rhai, "throw `m`;", error(), "m"),
        (Lua, "error({class = 'Mine', message = 'm'})", mine(), "m"),
        (Rhai, "throw #{ message: `m`, class: `Mine` };", mine(), "m"),
        (Lua, "error({code = 1})", error(), r#"{"code":1}"#),
        (Rhai, "throw #{ code: 1 };", error(), r#"{"code":1}"#),
        (Lua, "error(kopf.AdmissionError('m'))", RaisedKind::Admission(500), "m"),
        (Rhai, "throw kopf.AdmissionError(`m`);", RaisedKind::Admission(500), "m"),
        (Lua, "error(kopf.AdmissionError('m', 429))", RaisedKind::Admission(429), "m"),
        (Rhai, "throw kopf.AdmissionError(`m`, 429);", RaisedKind::Admission(429), "m"),
        (Lua, "ctx.logger.info('x')", error(), "info must be called with a colon: `:info(…)`"),
        (Lua, "local x = nil; x.y = 1", error(), "attempt to index nil with 'y'"),
        (Rhai, "let x = 1 / 0;", error(), "Division by zero: 1 / 0"),
    ] {
        let raised = language.run(body).raised();
        assert_eq!((raised.kind, &*raised.message), (kind, message), "{language:?}: {body}");
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
    let lua = r#"
        local ok, err = pcall(kopf.retry, "again", 10)
        local ok2, err2 = pcall(function() kopf.sleep(1); error("boom", 0) end)
        return {ok, tostring(err), err.message, err.delay, "it: " .. err, ok2, err2}
    "#;
    let told = Lua.run(lua).result();
    assert_eq!(told, json!([false, "again", "again", 10, "it: again", false, "boom"]));
    let rhai = "try { kopf.retry(`again`, 10); } catch (it) { return [`${it}`, it.message, it.delay, `it: ` + it]; }";
    assert_eq!(Rhai.run(rhai).result(), json!(["again", "again", 10.0, "it: again"]));
}
