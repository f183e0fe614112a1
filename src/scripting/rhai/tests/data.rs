//! Reading: kwargs, views of the object, results of scripts.

use serde_json::json;

use super::{Fixture, problem, run};

fn object() -> serde_json::Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "Thing",
        "metadata": { "name": "one", "namespace": "default", "labels": { "a/b": "c" } },
        "spec": {
            "field": "value", "count": 9_007_199_254_740_993_i64, "half": 0.5, "whole": 2.0,
            "yes": true, "nothing": null, "empty": [], "none": {}, "default": 7,
            "items": [{ "name": "first" }, { "name": "second" }], "words": ["a", "b"],
        },
    })
}

#[tokio::test]
async fn a_body_comes_back_as_it_was() {
    assert_eq!(run("ctx.body", object()).await, object());
    assert_eq!(run("kopf.copy(ctx.body)", object()).await, object());
    assert_eq!(run("ctx.spec.items", object()).await, object()["spec"]["items"]);
}

#[tokio::test]
async fn scalars_are_values_of_the_language() {
    let code = "[ctx.spec.field + '!', ctx.spec.count + 1, ctx.spec.half * 2.0, !ctx.spec.yes, \
                ctx.name, ctx.namespace, ctx.labels[\"a/b\"], ctx.spec[\"default\"]]";
    let expected =
        json!(["value!", 9_007_199_254_740_994_i64, 1.0, false, "one", "default", "c", 7]);
    assert_eq!(run(code, object()).await, expected);
}

#[tokio::test]
async fn a_missing_field_is_unit() {
    let code = "[ctx.spec.no == (), ctx.spec.nothing == (), ctx.spec.no?.deeper == (), \
                ctx.status.len(), ctx.stopped == ()]";
    assert_eq!(run(code, object()).await, json!([true, true, true, 0, true]));
}

#[tokio::test]
async fn a_name_that_no_ctx_has_is_an_error_with_the_nearest_one() {
    for (code, message) in [
        ("ctx.sepc.x", "ctx has no `sepc`; did you mean `ctx.spec`?"),
        ("ctx[\"nonsense\"]", "ctx has no `nonsense`"),
        (
            "ctx.own = 1",
            "ctx.own cannot be assigned: change the object through ctx.patch, store data in ctx.memo",
        ),
    ] {
        assert_eq!(problem(code, object()).await, message, "{code}");
    }
}

#[tokio::test]
async fn reading_through_a_missing_field_is_an_error_with_a_hint() {
    let message = problem("ctx.spec.no.deeper", object()).await;
    assert!(message.ends_with("use `?.` to read a field that may be missing"), "{message}");
}

#[tokio::test]
async fn views_behave_like_maps() {
    let code = "let keys = []; for key in ctx.meta { keys.push(key); } keys";
    assert_eq!(run(code, object()).await, json!(["name", "namespace", "labels"]));
    let code = r#"
        [ctx.meta.len(), ctx.meta.keys(), ctx.labels.values(), "field" in ctx.spec, "no" in ctx.spec,
         ctx.labels == #{"a/b": "c"}, ctx.labels != ctx.labels, ctx.spec.get("no", 5), ctx.spec.none.is_empty()]
    "#;
    let expected =
        json!([3, ["name", "namespace", "labels"], ["c"], true, false, true, false, 5, true]);
    assert_eq!(run(code, object()).await, expected);
}

#[tokio::test]
async fn lists_have_all_methods_of_the_language() {
    let code = "[ctx.spec.items.len(), ctx.spec.items.map(|it| it.name), ctx.spec.items[1].name, \
                ctx.spec.words.contains(\"b\"), ctx.spec.items.filter(|it| it.name == \"first\")]";
    let expected = json!([2, ["first", "second"], "second", true, [{ "name": "first" }]]);
    assert_eq!(run(code, object()).await, expected);
}

#[tokio::test]
async fn get_is_the_safe_way_down() {
    let code = r#"[kopf.get(ctx.spec, "items[1].name", "x"), kopf::get(ctx.spec, "no.such[3].field", "x"),
                   kopf.get(ctx.meta, ["labels", "a/b"]), kopf.get(ctx.spec, "no")]"#;
    assert_eq!(run(code, object()).await, json!(["second", "x", "c", null]));
}

#[tokio::test]
async fn parts_print_as_compact_json() {
    let code = "[`${ctx.labels}`, `${ctx.spec.items}`, `${ctx.diff}`]";
    let expected = json!([
        "{\"a/b\":\"c\"}",
        "[{\"name\":\"first\"},{\"name\":\"second\"}]",
        "[{\"field\":[\"spec\",\"x\"],\"new\":2,\"old\":1,\"op\":\"change\"}]",
    ]);
    assert_eq!(run(code, object()).await, expected);
}

#[tokio::test]
async fn assigning_into_the_object_is_refused_with_advice() {
    for code in [
        "ctx.spec.field = 1;",
        "ctx.spec.items.push(1);",
        "ctx.spec.items[0].name = \"x\";",
        "ctx.spec.none.x = 1;",
        "ctx.name = \"x\";",
        "ctx.spec = #{};",
    ] {
        let message = problem(code, object()).await;
        assert!(message.contains("ctx.patch"), "{code}: {message}");
    }
}

#[tokio::test]
async fn methods_of_a_list_change_nothing_and_its_items_cannot_be_replaced() {
    let body = json!({ "spec": { "list": [
        null, true, 1, 0.5, 2.0, u64::MAX, "text", [], [1, ["a"]], {}, { "a": [1] },
    ] } });
    assert_eq!(run("ctx.spec.list.len() + ctx.spec.list[8].len()", body.clone()).await, 13);
    for item in ["false", "2", "1.0", "0.25", "\"other\"", "[1]", "#{ a: 1 }"] {
        for place in 0..11 {
            let code = format!("ctx.spec.list[{place}] = {item};");
            let message = problem(&code, body.clone()).await;
            assert!(message.contains("ctx.patch"), "{code}: {message}");
        }
    }
}

#[tokio::test]
async fn a_copy_can_be_changed() {
    let code = "let spec = kopf.copy(ctx.spec); spec.field = 1; spec.items[0].name = \"x\"; \
                [spec.field, spec.items[0].name, ctx.spec.field]";
    assert_eq!(run(code, object()).await, json!([1, "x", "value"]));
}

#[tokio::test]
async fn what_json_cannot_hold_is_refused_with_its_path() {
    for (code, expected) in [
        ("#{ a: [1, || 2] }", "the result.a[1]: a function cannot be stored as JSON"),
        ("#{ a: 0.0 / 0.0 }", "the result.a: NaN and infinity are not valid in JSON"),
        (
            "ctx.patch.status.x = [ctx.logger];",
            "patch.status.x[0]: an object of the host cannot be stored as JSON",
        ),
        ("ctx.memo.x = || 1;", "memo.x: a function cannot be stored as JSON"),
    ] {
        let message = problem(code, object()).await;
        assert_eq!(message, expected, "{code}");
    }
}

#[tokio::test]
async fn a_handler_that_returns_nothing_gives_no_result() {
    let fixture = Fixture::handler("ctx.logger.info(\"hello\", #{ a: 1 });", object()).await;
    assert_eq!(fixture.call_nth(0).await, crate::logic::handlers::outcome::CallEnd::Returned(None));
}

#[tokio::test]
async fn the_resource_and_the_cause_are_readable() {
    let code = "[ctx.resource.plural, ctx.reason, ctx.old_value, ctx.new_value.kind, ctx.retry, ctx.diff[0].op]";
    assert_eq!(run(code, object()).await, json!(["things", "create", null, "Thing", 0, "change"]));
}

#[tokio::test]
async fn closures_may_use_what_they_are_called_on() {
    for code in [
        "ctx.spec.items.filter(|it| it.name != ctx.spec.field).map(|it| it.name)",
        "let spec = ctx.spec; spec.items.filter(|it| it.name != spec.field).map(|it| it.name)",
        "let memo = ctx.memo; memo.list = []; ctx.spec.items.for_each(|| memo.list.push(this.name)); memo.list",
        "let patch = ctx.patch; patch.a = ctx.spec.items; patch.a.map(|it| { patch.b = 1; it.name })",
        "let part = ctx.spec; part = part.items; part.map(|it| it.name)",
    ] {
        assert_eq!(run(code, object()).await, json!(["first", "second"]), "{code}");
    }
}

#[tokio::test]
async fn a_value_that_meets_its_own_lock_is_told_in_our_words() {
    let message = problem("let list = [1]; list.map(|it| list.len())", object()).await;
    assert!(message.contains("is in use by a function"), "{message}");
}
