//! Index functions and their tables; the scenarios test more of the common behavior of both languages.

use std::sync::Arc;

use kopf::{
    call::{CallServices, Indexes},
    logic::{
        background::indexing::{Contribution, IndexKey, Owner},
        handlers::outcome::CallEnd,
        object::Header,
    },
};
use serde_json::{Value, json};

use super::{
    Call,
    Language::{self, Lua, Rhai},
    load, run_paused,
};

/// Returns services with an index `idx` of these items, each from a separate object.
async fn services(items: impl IntoIterator<Item = (Value, Value)>) -> Arc<CallServices> {
    let indexes = Indexes::new(["idx".into()]);
    let index = indexes.get("idx").expect("it was made").clone();
    for (number, (key, value)) in items.into_iter().enumerate() {
        let owner = Owner::of(&Header { uid: Some(number.to_string()), ..Header::default() });
        let entry = (IndexKey::of(&key), value.into());
        index.apply(&owner, Contribution::Replace(vec![entry])).await;
    }
    Arc::new(CallServices { indexes, ..CallServices::default() })
}

/// Returns the result of a handler with this code that sees these items.
fn look(items: Vec<(Value, Value)>, (language, code): (Language, &str)) -> Call {
    run_paused(async {
        let mut script = language.load("on_update", code).await;
        script.services = services(items).await;
        script.call("update").await
    })
}

/// Returns the result of an index function with this code.
fn indexed(code: &str) -> CallEnd {
    run_paused(async {
        let text = format!("kopf.index('x', function(ctx) {code} end)");
        load(&text).await.call("index").await.ended
    })
}

#[test]
fn numbers_and_truth_values_are_keys_of_results() {
    let keyed = |items: Value| {
        let items = items.as_array().cloned().unwrap_or_default();
        CallEnd::Keyed(items.iter().map(|it| (it[0].clone(), it[1].clone())).collect())
    };
    assert_eq!(indexed("return {[8080] = ctx.name}"), keyed(json!([[8080, "example"]])));
    assert_eq!(indexed("return {[true] = 1}"), keyed(json!([[true, 1]])));
    assert_eq!(indexed("return {[kopf.null] = {x = 1}}"), keyed(json!([[null, { "x": 1 }]])));
    assert_eq!(indexed("return {[1.5] = kopf.null}"), keyed(json!([[1.5, null]])));
    let CallEnd::Keyed(mut mixed) = indexed("return {[1] = 'a', k = 'b'}") else {
        panic!("keys of several types")
    };
    mixed.sort_by_key(|(key, _)| key.to_string());
    assert_eq!(mixed, [(json!("k"), json!("b")), (json!(1), json!("a"))]);
}

#[test]
fn lists_and_objects_are_what_they_always_are() {
    let returned = |value: Value| CallEnd::Returned(Some(value));
    assert_eq!(indexed("return {'a', 'b'}"), returned(json!(["a", "b"])));
    assert_eq!(indexed("return {}"), returned(json!({})));
    assert_eq!(indexed("return kopf.array()"), returned(json!([])));
    assert_eq!(indexed("return ctx.spec.emptyList"), returned(json!([])));
    assert_eq!(indexed("return ctx.labels"), returned(json!({ "app": "demo" })));
    assert_eq!(indexed("return ctx.memo"), returned(json!({})));
    assert_eq!(indexed("return false"), returned(json!(false)));
    assert_eq!(indexed("return kopf.null"), CallEnd::Returned(None));
}

#[test]
fn what_is_no_key_and_no_value_is_refused_with_its_place() {
    let problem = |code: &str| match indexed(code) {
        CallEnd::Raised(raised) => raised.message,
        other @ (CallEnd::Returned(_) | CallEnd::Keyed(_)) => panic!("{other:?}"),
    };
    assert_eq!(
        problem("return {[{}] = 1}"),
        "the result: a key that is a table; join its parts into one string"
    );
    assert_eq!(
        problem("return {[print] = 1}"),
        "the result: a key: the value: a function cannot be stored as JSON"
    );
    assert_eq!(
        problem("return {[7] = {x = print}}"),
        "the result[7].x: a function cannot be stored as JSON"
    );
}

#[test]
fn keys_are_looked_up_by_value_and_type() {
    let items = vec![
        (json!(8080), json!("number")),
        (json!("8080"), json!("text")),
        (json!(true), json!("truth")),
        (json!(null), json!("flat")),
    ];
    let code = r#"
        local keys = {}
        for key in pairs(ctx.idx) do table.insert(keys, type(key)) end
        return {ctx.idx[8080][1], ctx.idx["8080"][1], ctx.idx[true][1], ctx.idx[kopf.null][1],
            ctx.idx[1] == nil, ctx.idx[false] == nil, ctx.idx[nil] == nil, ctx.idx[ctx.spec.nothing] == nil,
            kopf.get(ctx.idx, "8080[0]"), kopf.get(ctx.idx, {8080, 0}), #ctx.idx, table.concat(keys, " ")}
    "#;
    let expected = json!([
        "number",
        "text",
        "truth",
        "flat",
        true,
        true,
        true,
        true,
        "text",
        "number",
        4,
        "number string boolean userdata"
    ]);
    assert_eq!(look(items.clone(), (Lua, code)).result(), expected);
    let code = r#"[
        ctx.idx[8080][0], ctx.idx["8080"][0], ctx.idx[true][0], ctx.idx[()][0], ctx.idx.nothing, 8080 in ctx.idx, "80" in ctx.idx,
        ctx.idx.contains(()), ctx.idx.get("c", "-"), ctx.idx.get("8080") == ["text"], kopf.get(ctx.idx, "8080[0]"),
        kopf.get(ctx.idx, [8080, 0]), ctx.idx.keys(), ctx.idx.is_empty()
    ]"#;
    let keys = json!([8080, "8080", true, null]);
    let expected = json!([
        "number", "text", "truth", "flat", null, true, false, true, "-", true, "text", "number",
        keys, false
    ]);
    assert_eq!(look(items, (Rhai, code)).result(), expected);
    let items = vec![(json!(7), json!("x"))];
    for code in [(Lua, "return kopf.get(ctx.idx, '7[0]')"), (Rhai, "kopf.get(ctx.idx, `7[0]`)")] {
        assert_eq!(look(items.clone(), code).result(), json!("x"), "a path is a text");
    }
}

#[test]
fn a_store_reads_as_a_list() {
    let items =
        vec![(json!("k"), json!("a")), (json!("k"), json!(null)), (json!("k"), json!({"x": [1]}))];
    let code = r#"
        local store = ctx.idx.k
        local seen = {}
        for place, value in store do table.insert(seen, place .. "=" .. tostring(value)) end
        for place, value in pairs(store) do table.insert(seen, place .. "=" .. tostring(value)) end
        return {table.concat(seen, " "), store[0] == nil, store[4] == nil, store.x == nil, store[3].x[1],
            tostring(store), typeof(store), typeof(ctx.idx), (unpack(store)), #kopf.copy(store)}
    "#;
    let expected = json!([
        r#"1=a 2=null 3={"x":[1]} 1=a 2=null 3={"x":[1]}"#,
        true,
        true,
        true,
        1,
        r#"["a",null,{"x":[1]}]"#,
        "store",
        "index",
        "a",
        3
    ]);
    assert_eq!(look(items, (Lua, code)).result(), expected);
    let code = r#"
        let store = ctx.idx.k;
        let seen = [];
        for value in store { seen.push(value); }
        [
            seen, store.map(|it| it + "!"), store.filter(|it| it == "y"), store.some(|it| it == "y"), store.all(|it| it == "y"),
            store.reduce(|sum, it| sum + it, ""), store.index_of("y"), store.find(|it| it != "x"), store[-1], store.get(7),
            store == ["x", "y"], store != ctx.idx.other, "y" in store, `${store}`, store.to_array().len(), store.to_json()
        ]"#;
    let text = r#"["x","y"]"#;
    let expected = json!([
        ["x", "y"],
        ["x!", "y!"],
        ["y"],
        true,
        false,
        "xy",
        1,
        "y",
        "y",
        null,
        true,
        true,
        true,
        text,
        2,
        text
    ]);
    let items =
        || vec![(json!("k"), json!("x")), (json!("k"), json!("y")), (json!("other"), json!(1))];
    assert_eq!(look(items(), (Rhai, code)).result(), expected);
    let raised = look(items(), (Rhai, "ctx.idx.k[2]")).raised();
    assert!(raised.message.contains("index 2 out of bounds"), "{}", raised.message);
}

#[test]
fn nothing_can_be_written_but_what_is_there() {
    for code in [
        (Lua, "ctx.idx.a = ctx.idx.b"),
        (Lua, "ctx.idx.a[1] = 'z'"),
        (Lua, "ctx.idx.b[1].n = 2"),
        (Rhai, "ctx.idx.a = ctx.idx.b"),
        (Rhai, "ctx.idx.c = ctx.spec"),
        (Rhai, "ctx.idx.a[0] = `z`"),
        (Rhai, "ctx.idx.b[0].n = 2"),
    ] {
        let items = vec![(json!("a"), json!("x")), (json!("b"), json!({ "n": 1 }))];
        let raised = look(items, code).raised();
        assert!(raised.message.contains("read-only"), "{code:?}: {}", raised.message);
    }
}

#[test]
fn ctx_names_its_indexes() {
    let code =
        "for name, value in pairs(ctx) do if name == 'idx' then return tostring(value) end end";
    let found = look(vec![(json!("k"), json!(1))], (Lua, code)).result();
    assert_eq!(found, json!(r#"{"k":[1]}"#));
}

/// Checks an index that would not fit into the memory of a VM; converting it would take seconds.
#[test]
fn a_large_index_is_not_converted() {
    let text = "x".repeat(1000);
    let items = (0..100_000).map(|it| (json!(it % 50_000), json!({ "n": it, "text": text })));
    let lua = r#"
        local sum = 0
        for key, store in ctx.idx do
            sum = sum + #store
            if key == 1000 then break end
        end
        return {#ctx.idx, #kopf.values(ctx.idx), ctx.idx[49999][2].n, sum, kopf.get(ctx.idx, "3[1].n")}
    "#;
    let rhai = r#"
        let sum = 0;
        for key in ctx.idx {
            sum += ctx.idx[key].len();
            if key == 1000 { break; }
        }
        [ctx.idx.len(), kopf.values(ctx.idx).len(), ctx.idx[49999][1].n, sum, kopf.get(ctx.idx, "3[1].n")]
    "#;
    for code in [(Lua, lua), (Rhai, rhai)] {
        let expected = json!([50_000, 100_000, 99_999, 2002, 50_003]);
        assert_eq!(look(items.clone().collect(), code).result(), expected);
    }
}
