//! Texts that are received twice.

use std::sync::Arc;

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

fn event(recent: &RecentObjects, object: &Value) -> Arc<Object> {
    recent.event(object.to_string().into()).unwrap()
}

fn response(recent: &RecentObjects, object: &Value) -> Arc<Object> {
    recent.begin().parse(object.to_string().into()).unwrap()
}

#[test]
fn an_event_after_its_response_is_not_parsed() {
    let recent = RecentObjects::default();
    let text = object(5, "x").to_string();
    let answered = response(&recent, &object(5, "x"));
    let line = format!(r#"{{"type":"MODIFIED","object":{text}}}"#);
    let read = || match WatchLine::parse(&line.clone().into(), &recent) {
        Ok(WatchLine::Event(_, object)) => object,
        other => panic!("{other:?}"),
    };
    let seen = read();
    assert!(Arc::ptr_eq(&answered, &seen));
    assert_eq!(**seen.body(), **Object::from_value(object(5, "x")).body());
    assert_eq!(recent.bytes(), 0);
    // By another watch of the same objects.
    let again = read();
    assert!(!Arc::ptr_eq(&answered, &again));
    assert_eq!(again.body(), seen.body());
}

#[test]
fn a_response_after_its_event_is_not_parsed() {
    let recent = RecentObjects::default();
    let (next, other) = (recent.begin(), recent.begin());
    let seen = event(&recent, &object(5, "x"));
    let answered = next.parse(object(5, "x").to_string().into()).unwrap();
    assert!(Arc::ptr_eq(&seen, &answered));
    event(&recent, &object(6, "x"));
    assert!(recent.bytes() > 0);
    drop(other);
    assert_eq!(recent.bytes(), 0, "no response can follow");
    event(&recent, &object(7, "x"));
    assert_eq!(recent.bytes(), 0);
}

#[test]
fn only_equal_texts_are_the_same() {
    let recent = RecentObjects::default();
    let first = response(&recent, &object(5, "x"));
    for other in
        [object(5, "y"), object(6, "x"), json!({"spec": {"resourceVersion": "5"}}), json!({})]
    {
        let found = event(&recent, &other);
        assert!(!Arc::ptr_eq(&found, &first));
        assert_eq!(**found.body(), **Object::from_value(other).body());
    }
    assert!(Arc::ptr_eq(&first, &event(&recent, &object(5, "x"))));
}

#[test]
fn versions_need_no_numbers_and_may_be_missing() {
    for version in
        [json!("abc"), json!(""), json!("é\n\""), json!("x".repeat(500)), json!(5), Value::Null]
    {
        let recent = RecentObjects::default();
        let mut body = object(5, "x");
        body["metadata"]["resourceVersion"] = version;
        let expected = Object::from_value(body.clone());
        assert_eq!(response(&recent, &body).body(), expected.body());
        assert_eq!(event(&recent, &body).body(), expected.body());
    }
    let recent = RecentObjects::default();
    for cut in [r#"{"resourceVersion":""#, r#"{"resourceVersion":"5"#, "[]", ""] {
        for _ in 0..2 {
            assert!(recent.begin().parse(Bytes::from(cut)).is_err(), "{cut}");
            assert!(recent.event(Bytes::from(cut)).is_err(), "{cut}");
        }
    }
}

#[test]
fn the_texts_are_bounded_and_the_oldest_are_forgotten() {
    let recent = RecentObjects::default();
    let content = "x".repeat(BYTES_MAX / 10);
    let all: Vec<_> = (0..30).map(|it| response(&recent, &object(it, &content))).collect();
    assert!(recent.bytes() <= BYTES_MAX);
    assert!(!Arc::ptr_eq(&all[0], &event(&recent, &object(0, &content))));
    assert!(Arc::ptr_eq(&all[29], &event(&recent, &object(29, &content))));
    let huge = object(100, &"x".repeat(BYTES_MAX));
    let first = response(&recent, &huge);
    assert!(!Arc::ptr_eq(&first, &event(&recent, &huge)));
    assert_eq!(recent.bytes(), 0);
}
