//! Texts that are received twice.

use std::ptr;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::cluster::{
    decode::WatchLine,
    recent::{BYTES_MAX, RecentObjects},
};
use crate::logic::object::Object;

fn object(version: u32, content: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {
            "managedFields": [{"manager": "kopf", "fieldsV1": {"f:spec": {}}}],
            "name": "n1",
            "resourceVersion": version.to_string(),
            "uid": "u1",
        },
        "spec": {"content": content},
    })
}

fn read(recent: &RecentObjects, object: &Value) -> Object {
    recent.parse(object.to_string().into()).unwrap()
}

/// Returns whether the second one was read from the text of the first one, instead of its own.
fn is_same_text(one: &Object, other: &Object) -> bool {
    let is_equal = one.header() == other.header() && one.body() == other.body();
    is_equal && ptr::eq(one.header(), other.header()) && ptr::eq(one.raw(), other.raw())
}

#[test]
fn a_response_and_its_event_are_parsed_once_whichever_is_first() {
    let text = object(5, "x").to_string();
    let line = format!(r#"{{"type":"MODIFIED","object":{text}}}"#);
    let event = |recent: &RecentObjects| match WatchLine::parse(&line.clone().into(), recent) {
        Ok(WatchLine::Event(_, object)) => object,
        other => panic!("{other:?}"),
    };
    let recent = RecentObjects::default();
    let response = read(&recent, &object(5, "x"));
    assert!(is_same_text(&response, &event(&recent)));

    let first = event(&recent);
    assert!(!ptr::eq(response.header(), first.header()), "there was no third text");
    let response = read(&recent, &object(5, "x"));
    assert!(is_same_text(&first, &response));
    assert_eq!(**response.body(), **Object::from_value(object(5, "x")).body());
}

#[test]
fn only_equal_texts_are_the_same() {
    let recent = RecentObjects::default();
    let first = read(&recent, &object(5, "x"));
    for other in
        [object(5, "y"), object(6, "x"), json!({"spec": {"resourceVersion": "5"}}), json!({})]
    {
        let found = read(&recent, &other);
        assert!(!ptr::eq(found.header(), first.header()));
        assert_eq!(**found.body(), **Object::from_value(other).body());
    }
    assert!(is_same_text(&first, &read(&recent, &object(5, "x"))));
}

#[test]
fn an_object_has_its_own_tree() {
    let recent = RecentObjects::default();
    let first = read(&recent, &object(5, "x"));
    let tree = ptr::from_ref(&**first.body());
    assert_ne!(ptr::from_ref(&**read(&recent, &object(5, "x")).body()), tree);
}

#[test]
fn versions_need_no_numbers_and_may_be_missing() {
    for version in
        [json!("abc"), json!(""), json!("é\n\""), json!("x".repeat(500)), json!(5), Value::Null]
    {
        let recent = RecentObjects::default();
        let mut body = object(5, "x");
        body["metadata"]["resourceVersion"] = version;
        for _ in 0..3 {
            assert_eq!(**read(&recent, &body).body(), **Object::from_value(body.clone()).body());
        }
    }
    let recent = RecentObjects::default();
    for cut in [r#"{"resourceVersion":""#, r#"{"resourceVersion":"5"#, "[]", ""] {
        for _ in 0..3 {
            assert!(recent.parse(Bytes::from(cut)).is_err(), "{cut}");
        }
    }
}

#[test]
fn the_texts_are_bounded_and_the_oldest_are_forgotten() {
    let recent = RecentObjects::default();
    let content = "x".repeat(BYTES_MAX / 10);
    let all: Vec<_> = (0..30).map(|it| read(&recent, &object(it, &content))).collect();
    assert!(recent.bytes() <= BYTES_MAX);
    assert!(!is_same_text(&all[0], &read(&recent, &object(0, &content))));
    assert!(is_same_text(&all[29], &read(&recent, &object(29, &content))));
    let huge = object(100, &"x".repeat(BYTES_MAX));
    let first = read(&recent, &huge);
    assert!(!is_same_text(&first, &read(&recent, &huge)));
    assert_eq!(recent.bytes(), 0);
}
