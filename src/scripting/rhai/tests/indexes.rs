//! Tables of index functions in Rhai; what both languages have in common is in the scenarios.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Fixture;
use crate::call::{CallServices, Indexes};
use crate::logic::{
    background::indexing::{Contribution, Key, Owner},
    handlers::outcome::Ended,
    object::Header,
};

/// An index `idx` with these items, each of an object of its own.
fn services(items: impl IntoIterator<Item = (Value, Value)>) -> Arc<CallServices> {
    let indexes = Indexes::new(["idx".into()]);
    let index = indexes.get("idx").unwrap().clone();
    for (number, (key, value)) in items.into_iter().enumerate() {
        let owner = Owner::of(&Header { uid: Some(number.to_string()), ..Header::default() });
        let entry = (Key::of(&key), Arc::new(value));
        index.apply(&owner, Contribution::Replace(vec![entry]));
    }
    Arc::new(CallServices { indexes, ..CallServices::default() })
}

async fn ended(items: Vec<(Value, Value)>, code: &str) -> Ended {
    let mut fixture = Fixture::handler(code, json!({ "spec": { "keys": ["a", "b"] } })).await;
    fixture.services = services(items);
    fixture.call_nth(0).await
}

/// What a handler with this code returns, that sees these items.
async fn look(items: Vec<(Value, Value)>, code: &str) -> Value {
    match ended(items, code).await {
        Ended::Returned(value) => value.unwrap_or_default(),
        other @ (Ended::Keyed(_) | Ended::Raised(_)) => panic!("{other:?}"),
    }
}

fn letters() -> Vec<(Value, Value)> {
    vec![
        (json!("a"), json!("x")),
        (json!("b"), json!({ "n": 1 })),
        (json!("a"), json!("y")),
        (json!(8080), json!("number")),
        (json!(true), json!("truth")),
        (json!(null), json!("flat")),
    ]
}

#[tokio::test]
async fn keys_are_looked_up_by_value_and_type() {
    let code = r#"[
        ctx.idx[8080][0], ctx.idx[true][0], ctx.idx[()][0], ctx.idx["8080"], ctx.idx.a[1], ctx.idx.nothing,
        8080 in ctx.idx, "8080" in ctx.idx, ctx.idx.contains(()), ctx.idx.get("c", "-"), ctx.idx.get("a") == ["x", "y"],
        kopf.get(ctx.idx, "8080[0]"), kopf.get(ctx.idx, "b[0].n"), ctx.idx.keys(), ctx.idx.is_empty()
    ]"#;
    let expected = json!([
        "number",
        "truth",
        "flat",
        null,
        "y",
        null,
        true,
        false,
        true,
        "-",
        true,
        "number",
        1,
        ["a", "b", 8080, true, null],
        false
    ]);
    assert_eq!(look(letters(), code).await, expected);
}

#[tokio::test]
async fn a_store_reads_as_a_list() {
    let code = r#"
        let store = ctx.idx.a;
        let seen = [];
        for value in store { seen.push(value); }
        [
            seen, store.map(|it| it + "!"), store.filter(|it| it == "y"), store.some(|it| it == "y"), store.all(|it| it == "y"),
            store.reduce(|sum, it| sum + it, ""), store.index_of("y"), store.find(|it| it != "x"), store[-1], store.get(7),
            store == ["x", "y"], store != ctx.idx.b, "y" in store, `${store}`, store.to_array().len(), store.to_json(),
            ctx.spec.keys.filter(|it| it in ctx.idx)
        ]"#;
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
        "[\"x\",\"y\"]",
        2,
        "[\"x\",\"y\"]",
        ["a", "b"]
    ]);
    assert_eq!(look(letters(), code).await, expected);
}

#[tokio::test]
async fn a_place_that_is_not_there_is_an_error_as_in_lists() {
    let Ended::Raised(raised) = ended(letters(), "ctx.idx.a[2]").await else { panic!("no error") };
    assert!(raised.message.contains("index 2 out of bounds"), "{}", raised.message);
}

#[tokio::test]
async fn nothing_can_be_written_but_what_is_there() {
    for code in [
        "ctx.idx.a = ctx.idx.b",
        "ctx.idx.c = ctx.spec",
        "ctx.idx.a[0] = \"z\"",
        "ctx.idx.b[0].n = 2",
    ] {
        let Ended::Raised(raised) = ended(letters(), code).await else { panic!("{code}") };
        assert!(raised.message.contains("read-only"), "{code}: {}", raised.message);
    }
}

#[tokio::test]
async fn a_large_index_is_not_converted() {
    let items = (0..100_000).map(|it| (json!(it % 50_000), json!({ "n": it })));
    let code = r"
        let sum = 0;
        for key in ctx.idx {
            sum += ctx.idx[key].len();
            if key == 1000 { break; }
        }
        [ctx.idx.len(), kopf.values(ctx.idx).len(), ctx.idx[49999][1].n, sum]";
    let expected = json!([50_000, 100_000, 99_999, 2002]);
    assert_eq!(look(items.collect(), code).await, expected);
}
