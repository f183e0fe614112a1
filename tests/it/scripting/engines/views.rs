//! The live parts of `ctx`: patch, memo, logger, settings.

use std::time::Duration;

use serde_json::{Value, json};

use super::{eval, load, run, run_paused};
use kopf::{call::Scripts as _, logic::handlers::outcome::CallEnd};

#[test]
fn a_patch_creates_levels_on_the_way() {
    let call = run(r#"
        ctx.patch.status.phase = "Ready"
        ctx.patch.meta.annotations["a.b/c"] = "x"
        ctx.patch.spec.template.spec = {list = {1, 2}}
        ctx.patch.data["1"] = "x"
        "#);
    let expected = json!({
        "status": {"phase": "Ready"},
        "metadata": {"annotations": {"a.b/c": "x"}},
        "spec": {"template": {"spec": {"list": [1, 2]}}},
        "data": {"1": "x"},
    });
    assert_eq!(Value::Object(call.patch.merge), expected);
}

#[test]
fn null_deletes_on_the_cluster_and_nil_withdraws() {
    let call = run(r"
        ctx.patch.status.gone = kopf.null
        ctx.patch.status.deep.deeper = 1
        ctx.patch.status.deep.deeper = nil
        ctx.patch.spec.x = 1
        ctx.patch.spec.x = nil
        ");
    assert_eq!(Value::Object(call.patch.merge), json!({"status": {"gone": null}}));
}

#[test]
fn a_patch_reads_what_was_written() {
    let call = run(r#"
        ctx.patch.status.phase = "Ready"
        ctx.patch.status.list = {1}
        local keys = {}
        for key in pairs(ctx.patch.status) do table.insert(keys, key) end
        table.sort(keys)
        return {ctx.patch.status.phase, ctx.patch.status.list[1], tostring(ctx.patch.status), table.concat(keys)}
        "#);
    assert_eq!(call.result(), json!(["Ready", 1, r#"{"list":[1],"phase":"Ready"}"#, "listphase"]));
}

#[test]
fn a_bad_value_names_its_place_in_the_patch() {
    let raised = run("ctx.patch.status.x = {y = {print}}").raised();
    assert_eq!(raised.message, "patch.status.x.y[1]: a function cannot be stored as JSON");
    let raised = run("ctx.patch.spec.l = {1}; ctx.patch.spec.l[2] = 2").raised();
    assert!(raised.message.starts_with("this value is read-only"), "{}", raised.message);
    let raised = run("ctx.patch.spec.list[1] = 'x'").raised();
    assert_eq!(raised.message, "patch.spec.list.1: a patch replaces a list as a whole");
}

#[test]
fn a_memo_is_alive_at_every_level() {
    let script = run_paused(async {
        let script = load(
            r#"
            kopf.on_update("x", {id = "write"}, function(ctx)
                ctx.memo.counter = (ctx.memo.counter or 0) + 1
                ctx.memo.nested = {list = {}}
                table.insert(ctx.memo.nested.list, "a")
                table.insert(ctx.memo.nested.list, "c")
                table.insert(ctx.memo.nested.list, 2, "b")
                ctx.memo.nested.map = {x = 1}
                ctx.memo.nested.map.x = nil
            end)
            kopf.on_update("x", {id = "read"}, function(ctx)
                local seen = {}
                for i, value in ipairs(ctx.memo.nested.list) do seen[i] = value end
                local keys = {}
                for key in pairs(ctx.memo) do table.insert(keys, key) end
                table.sort(keys)
                return {counter = ctx.memo.counter, list = seen, n = #ctx.memo.nested.list, missing = ctx.memo.nothing == nil,
                    removed = table.remove(ctx.memo.nested.list, 1), keys = table.concat(keys, ",")}
            end)
            "#,
        )
        .await;
        script.call("write").await.result();
        script.call("write").await.result();
        let read = script.call("read").await.result();
        let expected = json!({"counter": 2, "list": ["a", "b", "c"], "n": 3, "missing": true,
            "removed": "a", "keys": "counter,nested"});
        assert_eq!(read, expected);
        script
    });
    let content = Value::Object(script.memo.lock().clone());
    assert_eq!(content, json!({"counter": 2, "nested": {"list": ["b", "c"], "map": {}}}));
}

#[test]
fn a_memo_goes_to_the_patch_as_plain_data() {
    let call = run("ctx.memo.x = {y = {1}}; ctx.patch.status.x = ctx.memo.x; return ctx.memo.x");
    assert_eq!(call.patch.merge["status"], json!({"x": {"y": [1]}}));
    assert_eq!(call.result(), json!({"y": [1]}));
}

#[test]
fn the_logger_formats_and_takes_fields() {
    eval(
        r#"
        local logger = ctx.logger
        logger:info("100%")
        logger:info("100%", {key = "value"})
        logger:info("took %d s, %s", 5, ctx.status)
        logger:warning("with fields", {key = "value", list = {1}})
        logger:error("took %d s", 5, {key = "value"})
        logger:dbg("twin")
        logger:exception("failed: %s", "x")
        "#,
    );
    assert!(run("ctx.logger:error('%d', 'x')").raised().message.contains("number expected"));
}

#[test]
fn settings_can_be_changed_at_startup() {
    run_paused(async {
        let script = load(
            r#"
            kopf.on_startup(function(ctx)
                ctx.settings.posting.enabled = false
                ctx.settings.execution.default_backoff = "10m"
                return ctx.settings.execution.default_backoff
            end)
            kopf.on_startup({id = "bad"}, function(ctx) ctx.settings.posting.enable = true end)
            "#,
        )
        .await;
        let ended = script.host.call(script.startup("startup")).await;
        assert_eq!(ended, CallEnd::Returned(Some(json!(600))));
        let settings = script.settings.lock().clone();
        assert!(!settings.posting.enabled);
        assert_eq!(settings.execution.default_backoff, Duration::from_mins(10));
        let CallEnd::Raised(raised) = script.host.call(script.startup("bad")).await else {
            panic!("unknown settings are refused")
        };
        assert!(raised.message.contains("did you mean `enabled`?"), "{}", raised.message);
    });
}
