//! Values between the host and scripts, in both directions.

use std::sync::Arc;

use serde_json::json;

use super::{eval, load, run, run_paused, sample};
use kopf::{
    call::{Scripts as _, SharedPatch},
    logic::handlers::outcome::CallEnd,
};

#[test]
fn what_was_read_is_written_back_equal() {
    let call = run("ctx.patch.spec = ctx.spec");
    let mut expected = sample()["spec"].clone();
    assert_eq!(call.patch.merge["spec"], {
        expected.sort_all_objects();
        expected
    });
}

#[test]
fn parts_work_as_native_tables() {
    let result = eval(
        r#"
        local keys, n = {}, 0
        for key in pairs(ctx.spec) do table.insert(keys, key) end
        for _ in ipairs(ctx.spec.items) do n += 1 end
        table.sort(keys)
        return {keys = table.concat(keys, ","), items = #ctx.spec.items, n = n, null = ctx.spec.items[2] == kopf.null,
            same = ctx.spec == ctx.spec, missing = ctx.spec.nothing == nil, label = ctx.labels.app}
        "#,
    );
    let expected = json!({
        "keys": "big,emptyList,emptyMap,items,size,text", "items": 3, "n": 3, "null": true,
        "same": true, "missing": true, "label": "demo",
    });
    assert_eq!(result, expected);
}

#[test]
fn handlers_and_filters_of_one_version_share_its_tables() {
    let (calls, shared) = run_paused(async {
        let script = load(
            r#"
            local kept = {}
            local function is_kept(name, part)
                local was = kept[name]
                kept[name] = part
                return was == part
            end
            kopf.on_update("kopfexamples", {id = "it"}, function(ctx)
                return {
                    spec = is_kept("spec", ctx.spec), body = is_kept("body", ctx.body), labels = is_kept("labels", ctx.labels),
                    annotations = is_kept("annotations", ctx.annotations), frozen = table.isfrozen(ctx.spec),
                    spec_is_body = ctx.spec == ctx.body, phase = ctx.status.phase,
                }
            end)
            "#,
        )
        .await;
        let first = script.change("it", &sample(), &SharedPatch::default());
        let other = script.change("it", &sample(), &SharedPatch::default());
        let mut calls = Vec::new();
        for it in [&first, &first, &other, &first] {
            let CallEnd::Returned(result) = script.host.call(Arc::clone(it)).await else {
                panic!("the call fails")
            };
            calls.push(result.expect("a result"));
        }
        let shared = |it: bool| {
            json!({"spec": it, "body": it, "labels": it, "annotations": it, "frozen": true,
                "spec_is_body": false, "phase": "Old"})
        };
        (calls, shared)
    });
    assert_eq!(calls, [false, true, false, false].map(shared));
}

#[test]
fn parts_print_as_compact_json() {
    let result = eval(
        "return {tostring(ctx.status), tostring(ctx.spec.emptyList), tostring(kopf.null), string.format('%s', ctx.labels)}",
    );
    assert_eq!(result, json!([r#"{"phase":"Old"}"#, "[]", "null", r#"{"app":"demo"}"#]));
}

#[test]
fn integers_beyond_floats_are_exact() {
    let result = eval("return {text = tostring(ctx.spec.big), value = ctx.spec.big}");
    assert_eq!(result, json!({"text": "9007199254740993", "value": 9_007_199_254_740_993_i64}));
}

#[test]
fn whole_numbers_stay_integers() {
    assert_eq!(eval("return 10 / 2").to_string(), "5");
    assert_eq!(eval("return 1.5").to_string(), "1.5");
}

#[test]
fn empty_tables_are_what_they_are_meant_to_be() {
    let call = run(r"
        ctx.patch.spec.emptyList = {}
        ctx.patch.spec.new = {}
        ctx.patch.spec.array = kopf.array{}
        ctx.patch.spec.nested = {inner = ctx.spec.emptyList}
        ");
    let expected = json!({"emptyList": [], "new": {}, "array": [], "nested": {"inner": []}});
    assert_eq!(call.patch.merge["spec"], expected);
}

#[test]
fn what_json_cannot_hold_is_refused_with_its_path() {
    let refused = [
        ("{1, 2, x = 3}", "the result.x: a table with both list items and keys"),
        ("{[1] = 1, [3] = 3}", "the result.x: a list with holes (use kopf.null for a null item)"),
        ("0/0", "the result.x: NaN and infinity are not valid in JSON"),
        ("{print}", "the result.x[1]: a function cannot be stored as JSON"),
        ("'\\255'", "the result.x: bytes cannot be stored as JSON: encode them with base64.encode"),
        ("{[true] = 1}", "the result.x: a key that is a boolean"),
        ("coroutine.create(print)", "the result.x: a coroutine cannot be stored as JSON"),
    ];
    for (value, message) in refused {
        assert_eq!(run(&format!("return {{x = {value}}}")).raised().message, message);
    }
    let cycle = run("local t = {}; t.t = {t}; return t").raised();
    assert_eq!(cycle.message, "the result.t[1]: a table that contains itself");
    let deep = run("local t = {}; for i = 1, 1000 do t = {t} end; return t").raised();
    assert!(deep.message.ends_with("nested deeper than 128 levels"), "{}", deep.message);
}

#[test]
fn parts_are_read_only() {
    let known = run("ctx.spec.size = 3").raised().message;
    assert_eq!(
        known,
        "this value is read-only: change the object through ctx.patch, or change a kopf.copy of it"
    );
    assert_eq!(run("ctx.labels.new = 'x'").raised().message, known);
    assert_eq!(run("table.insert(ctx.spec.items, 1)").raised().message, known);
    assert!(run("ctx.spec = {}").raised().message.starts_with("ctx.spec cannot be assigned"));
}

#[test]
fn copies_can_be_changed() {
    let result = eval(
        "local spec = kopf.copy(ctx.spec); spec.size = 3; table.insert(spec.items, 'x'); return {spec.size, #spec.items}",
    );
    assert_eq!(result, json!([3, 4]));
}

#[test]
fn get_reads_through_what_is_missing() {
    let result = eval(
        r#"
        return {
            kopf.get(ctx.spec, "items[2].b[0]"),
            kopf.get(ctx.spec, "items[1]", "null"),
            kopf.get(ctx.spec, "a.b[0].c", "default"),
            kopf.get(ctx.body, {"metadata", "labels", "app"}),
            kopf.get(ctx.patch, "status.phase", "nothing"),
        }
        "#,
    );
    assert_eq!(result, json!([1.5, "null", "default", "demo", "nothing"]));
}

#[test]
fn kwargs_are_fields() {
    let result = eval(
        r"
        return {ctx.name, ctx.namespace, ctx.uid, ctx.retry, ctx.started, ctx.runtime, ctx.reason,
            ctx.meta.name, ctx.resource.plural, ctx.old.spec.size, ctx.new_value.spec.size,
            ctx.diff[1].op, ctx.diff[1].field[2], ctx.diff[1].old, ctx.diff[1].new, ctx.stopped == nil}
        ",
    );
    let expected = json!([
        "example",
        "default",
        "1234",
        3,
        "2026-01-02T03:04:05Z",
        1.5,
        "update",
        "example",
        "kopfexamples",
        1,
        2,
        "change",
        "size",
        1,
        2,
        true
    ]);
    assert_eq!(result, expected);
}

#[test]
fn what_ctx_has_can_be_listed() {
    let result = eval(
        "local names = {}; for name in pairs(ctx) do table.insert(names, name) end; table.sort(names); return table.concat(names, ' ')",
    );
    let expected = "annotations body conditions diff dry labels logger memo meta name namespace new new_value old old_value patch \
        reason resource retry runtime spec started status uid";
    assert_eq!(result, json!(expected));
}

#[test]
fn a_transformation_changes_only_what_it_touches() {
    let body = json!({"metadata": {"creationTimestamp": null}, "spec": {"ratio": 1.0, "list": [], "map": {}}});
    let changed = run_paused(async {
        let script = load(
            "kopf.on_update('x', function(ctx) ctx.patch.fns:append(function(body) body.spec.new = #body.spec.list end) end)",
        )
        .await;
        let patch = script.call("update").await.patch;
        let [kopf::logic::change::patch::Transformation::Scripted(function)] =
            &patch.transformations[..]
        else {
            panic!("{patch:?}")
        };
        script.host.transform(function.clone(), body.clone()).await.expect("changed")
    });
    let mut expected = body;
    expected["spec"]["new"] = json!(0);
    assert_eq!(changed, expected);
}
