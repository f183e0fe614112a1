//! Unusual objects: the operator handles what can be handled, and keeps running.

use serde_json::{Map, Value, json};

use super::namespace::{Namespace, is_settled};
use super::operator::{file, ours};

const SCRIPT: &str = "examples/01-minimal/handlers.lua";

fn object(name: &str, metadata: Value, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "kopf.dev/v1", "kind": "KopfExample"});
    object["metadata"] = metadata;
    object["metadata"]["name"] = name.into();
    object["spec"] = spec;
    object
}

/// Creates the objects before and while the operator runs; each must be handled, and the operator must not stop.
async fn are_handled(test: &str, objects: &[Value]) {
    let Some(namespace) = Namespace::for_test(test).await else { return };
    let (before, while_running) = objects.split_at(objects.len() / 2);
    for object in before {
        namespace.create(object).await;
    }
    let operator = ours(&namespace, &file(SCRIPT));
    for object in while_running {
        namespace.create(object).await;
    }
    for object in objects {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let handled = |it: &Value| is_settled(it) && it["status"]["create_fn"].is_object();
        namespace.until_object(name, &format!("{name} is handled"), handled).await;
    }
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("panicked", 0);
}

#[tokio::test]
async fn empty_and_null_parts_are_no_reason_to_fail() {
    let nulls = json!({"labels": null, "annotations": null, "finalizers": null});
    let empty = json!({"labels": {}, "annotations": {}, "finalizers": []});
    are_handled(
        "odd-empty",
        &[
            object("nulls", nulls.clone(), json!({})),
            object("empty", empty.clone(), json!({"a": {}, "b": [], "c": [{}], "d": [[]]})),
            object("nulls-later", nulls, json!({"list": [1, null, "x"]})),
            object("empty-later", empty, json!({"text": "", "no": false, "zero": 0})),
        ],
    )
    .await;
}

#[tokio::test]
async fn keys_and_values_of_any_script_and_shape_pass_through() {
    let keys = json!({
        "a.b": 1, "a/b": {"~1": "~0"}, "": "empty key", "ключ": "значение", "鍵": ["値"],
        "emoji 🦀": "🦀", "quote\"": "back\\slash", "new\nline": "\u{1}\u{7f}",
    });
    let numbers = json!({
        "big": 9_007_199_254_740_993_i64, "negative": -1, "float": 0.1, "large": 1e300,
    });
    let labels = json!({"labels": {"example.com/some.label_1": "V.a-l_ue"}});
    are_handled(
        "odd-keys",
        &[
            object("keys", labels.clone(), keys.clone()),
            object("numbers", json!({}), numbers.clone()),
            object("keys-later", labels, keys),
            object("numbers-later", json!({}), numbers),
        ],
    )
    .await;
}

#[tokio::test]
async fn deep_and_wide_objects_are_handled() {
    let mut deep = json!("bottom");
    for _ in 0..60 {
        deep = json!({ "down": [deep] });
    }
    let wide: Map<String, Value> = (0..2000).map(|it| (format!("key-{it}"), it.into())).collect();
    are_handled(
        "odd-shapes",
        &[
            object("deep", json!({}), json!({ "deep": deep.clone() })),
            object("wide", json!({}), Value::Object(wide.clone())),
            object("deep-later", json!({}), json!({ "deep": deep })),
            object("wide-later", json!({}), Value::Object(wide)),
        ],
    )
    .await;
}

/// The maximum size of an object is that of etcd, 1.5 MiB with the stored essence; annotations are limited to 256 KiB, so the essence of
/// such an object cannot be stored: its handling fails repeatedly, with growing pauses, and affects no other object.
#[tokio::test]
async fn an_object_too_large_for_its_annotation_fails_alone() {
    let Some(namespace) = Namespace::for_test("odd-large").await else { return };
    let large = json!({"data": "x".repeat(1_000_000)});
    namespace.create(&object("large", json!({}), large)).await;
    let operator = ours(&namespace, &file(SCRIPT));
    operator.until_says("[odd-large/large]").await;
    namespace.create(&object("small", json!({}), json!({}))).await;
    namespace.until_object("small", "the small object is handled", is_settled).await;
    let large = json!({"data": "x".repeat(100_000)});
    namespace.create(&object("fits", json!({}), large)).await;
    namespace.until_object("fits", "the object that fits is handled", is_settled).await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn broken_annotations_of_ours_do_not_stop_the_operator() {
    let Some(namespace) = Namespace::for_test("odd-annotations").await else { return };
    let cases = [
        ("essence-cut", "last-handled-configuration", "{\"spec\":"),
        ("essence-list", "last-handled-configuration", "[1]"),
        ("essence-empty", "last-handled-configuration", ""),
        ("record-cut", "create_fn", "{\"started\":"),
        ("record-text", "create_fn", "\"text\""),
        ("record-types", "create_fn", "{\"started\":1,\"retries\":\"many\",\"success\":null}"),
        ("record-time", "create_fn", "{\"started\":\"yesterday\",\"delayed\":\"never\"}"),
        ("record-foreign", "no_such_fn", "{}"),
        ("touch", "touch-dummy", "{{{"),
    ];
    for (name, key, text) in cases {
        let metadata = json!({"annotations": {format!("kopf.zalando.org/{key}"): text}});
        namespace.create(&object(name, metadata, json!({}))).await;
    }
    let operator = ours(&namespace, &file(SCRIPT));
    for (name, ..) in cases {
        operator.until_says(&format!("[odd-annotations/{name}]")).await;
    }
    namespace.create(&object("sound", json!({}), json!({}))).await;
    namespace.until_object("sound", "the sound object is handled", is_settled).await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("panicked", 0);
}
