//! Writing: patches, transformations, memos, settings.

use std::time::Duration;

use serde_json::json;

use super::{Fixture, problem};
use crate::logic::change::patch::Transformation;

async fn patched(code: &str) -> serde_json::Value {
    let fixture = Fixture::handler(code, json!({ "spec": { "list": [1, { "a": null }] } })).await;
    fixture.returned().await;
    serde_json::Value::Object(fixture.patch().merge)
}

#[tokio::test]
async fn levels_of_a_patch_come_into_being() {
    assert_eq!(
        patched("ctx.patch.status.phase = \"Ready\"; ctx.patch.status.deep.er = 1;").await,
        json!({ "status": { "phase": "Ready", "deep": { "er": 1 } } })
    );
}

#[tokio::test]
async fn reading_a_patch_leaves_nothing_in_it() {
    let code =
        "if ctx.patch.status.phase == () && !(\"x\" in ctx.patch.spec) { ctx.patch.a = 1; } ()";
    assert_eq!(patched(code).await, json!({ "a": 1 }));
}

#[tokio::test]
async fn meta_is_metadata() {
    let code = "ctx.patch.meta.labels[\"a/b\"] = \"c\";";
    assert_eq!(patched(code).await, json!({ "metadata": { "labels": { "a/b": "c" } } }));
}

#[tokio::test]
async fn unit_deletes_on_the_cluster_and_remove_withdraws() {
    let code =
        "ctx.patch.spec.gone = (); ctx.patch.spec.kept = 1; ctx.patch.spec.remove(\"kept\"); ()";
    assert_eq!(patched(code).await, json!({ "spec": { "gone": null } }));
}

#[tokio::test]
async fn a_deleted_level_can_be_written_to_again() {
    let code = "ctx.patch.status = (); ctx.patch.status.phase = 1;";
    assert_eq!(patched(code).await, json!({ "status": { "phase": 1 } }));
}

#[tokio::test]
async fn lists_in_a_patch_change_in_place() {
    let code = "ctx.patch.spec.list = ctx.spec.list; ctx.patch.spec.list.push(2); \
                ctx.patch.spec.list[1].b = 3; ctx.patch.n = 1; ctx.patch.n += 1;";
    let expected = json!({ "spec": { "list": [1, { "a": null, "b": 3 }, 2] }, "n": 2 });
    assert_eq!(patched(code).await, expected);
}

#[tokio::test]
async fn a_part_of_the_object_goes_into_a_patch_unchanged() {
    let code = "ctx.patch.spec = ctx.spec;";
    assert_eq!(patched(code).await, json!({ "spec": { "list": [1, { "a": null }] } }));
}

#[tokio::test]
async fn a_level_below_a_scalar_is_refused() {
    let code = "ctx.patch.status = 1; let status = ctx.patch; status.x = 1; ctx.patch.set(\"status\", 2); \
                let deep = ctx.patch.other.deep; ctx.patch.other = 5; deep.x = 1;";
    assert_eq!(problem(code, json!({})).await, "patch.other is not a map");
}

#[tokio::test]
async fn transformations_change_the_body_they_are_given() {
    let code = "let x = 5; ctx.patch.fns.append(|body| { body.spec.x = x; body.spec.remove(\"y\") }); \
                ctx.patch.fns += second; ()";
    let text = format!(
        "fn second(body) {{ body.list.push(2); }}\nfn handler(ctx) {{ {code} }}\nkopf::on_create(\"things\", handler);"
    );
    let fixture = Fixture::new(&text, json!({})).await;
    fixture.returned().await;
    let mut body = json!({ "spec": { "y": 1 }, "list": [1], "keep": null });
    for transformation in fixture.patch().transformations {
        let Transformation::Scripted(function) = transformation else {
            panic!("{transformation:?}");
        };
        body = fixture.loaded.engine.transform(function, body).await.unwrap();
    }
    assert_eq!(body, json!({ "spec": { "x": 5 }, "list": [1, 2], "keep": null }));
}

#[tokio::test]
async fn a_memo_is_shared_between_calls() {
    let code = "if !(\"n\" in ctx.memo) { ctx.memo.n = 0; ctx.memo.seen = []; ctx.memo.map = #{}; } \
                ctx.memo.n += 1; ctx.memo.seen.push(ctx.memo.n); ctx.memo.map.last = ctx.memo.n; ctx.memo";
    let fixture = Fixture::handler(code, json!({})).await;
    fixture.returned().await;
    assert_eq!(fixture.returned().await, json!({ "n": 2, "seen": [1, 2], "map": { "last": 2 } }));
}

#[tokio::test]
async fn unit_takes_a_field_out_of_a_memo() {
    let code = "ctx.memo.a = 1; ctx.memo.b = 2; ctx.memo.a = (); [ctx.memo.keys(), ctx.memo.a]";
    let fixture = Fixture::handler(code, json!({})).await;
    assert_eq!(fixture.returned().await, json!([["b"], null]));
}

#[tokio::test]
async fn a_startup_handler_changes_settings() {
    let text = "kopf::on_startup(|ctx| { ctx.settings.execution.default_backoff = \"10m\"; \
                ctx.settings.posting.enabled = !ctx.settings.posting.enabled; ctx.activity });";
    let fixture = Fixture::new(text, json!({})).await;
    let invocation = fixture.activity(fixture.nth(0));
    let ended = fixture.loaded.engine.call(invocation).await;
    assert_eq!(ended, crate::logic::handlers::outcome::CallEnd::Returned(Some(json!("startup"))));
    let settings = fixture.settings.lock();
    assert_eq!(settings.execution.default_backoff, Duration::from_mins(10));
    assert!(!settings.posting.enabled);
}

#[tokio::test]
async fn a_wrong_setting_is_refused() {
    let text = "kopf::on_startup(|ctx| { ctx.settings.posting.enable = true; });";
    let fixture = Fixture::new(text, json!({})).await;
    let ended = fixture.loaded.engine.call(fixture.activity(fixture.nth(0))).await;
    let crate::logic::handlers::outcome::CallEnd::Raised(raised) = ended else {
        panic!("{ended:?}")
    };
    assert!(raised.message.ends_with("did you mean `enabled`?"), "{}", raised.message);
}
