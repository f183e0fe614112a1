//! Lists and watch lines.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::cluster::{
    decode::{ListChunk, WatchLine},
    recent::RecentObjects,
};
use crate::logic::object::reason::EventType;

fn bodies(list: &Value) -> Vec<Value> {
    let page = ListChunk::parse(&Bytes::from(list.to_string())).unwrap();
    page.map(|it| it.unwrap().body().as_ref().clone()).collect()
}

#[test]
fn items_get_what_they_lack_from_the_list() {
    let list = json!({"kind": "PodList", "apiVersion": "v1", "items": [
        {"metadata": {"name": "a"}}, {"kind": "Other", "apiVersion": "x/v1"}, {"kind": "Other"}, {},
    ]});
    let expected = [
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
        json!({"kind": "Other", "apiVersion": "x/v1"}),
        json!({"apiVersion": "v1", "kind": "Other"}),
        json!({"apiVersion": "v1", "kind": "Pod"}),
    ];
    assert_eq!(bodies(&list), expected);
}

#[test]
fn a_list_without_items_or_types_is_just_empty() {
    assert_eq!(bodies(&json!({"kind": "PodList", "items": null})), Vec::<Value>::new());
    assert_eq!(bodies(&json!({"items": []})), Vec::<Value>::new());
    assert_eq!(bodies(&json!({"items": [{}]})), [json!({})]);
}

#[test]
fn what_is_no_list_is_no_empty_list() {
    for page in ["{}", r#"{"kind": "Status"}"#, r#"{"error": "maintenance"}"#, "[]"] {
        assert!(ListChunk::parse(&Bytes::from(page)).is_err(), "{page}");
    }
}

#[test]
fn an_item_does_not_keep_its_page() {
    let list = Bytes::from(json!({"items": [{"kind": "A", "apiVersion": "v1"}]}).to_string());
    let mut page = ListChunk::parse(&list).unwrap();
    let object = page.next().unwrap().unwrap();
    drop(page);
    assert!(list.is_unique());
    drop(object);
}

#[test]
fn an_empty_continue_token_is_the_end() {
    let page = |token: &str| {
        let list = json!({"metadata": {"continue": token, "resourceVersion": "7"}, "items": []});
        ListChunk::parse(&Bytes::from(list.to_string())).unwrap()
    };
    assert_eq!(page("").token, None);
    assert_eq!(page("t\"1").token.as_deref(), Some("t\"1"));
    assert_eq!(page("").version.as_deref(), Some("7"));
}

#[test]
fn lines_are_distinguished() {
    let parse =
        |line: &str| WatchLine::parse(&Bytes::from(line.to_owned()), &RecentObjects::default());
    let object =
        r#"{"type": "DELETED", "object": {"metadata": {"name": "n", "resourceVersion": "3"}}}"#;
    let Ok(WatchLine::Event(EventType::Deleted, object)) = parse(object) else { panic!() };
    assert_eq!(object.header().resource_version.as_deref(), Some("3"));
    let mark = r#"{"object": {"metadata": {"resourceVersion": "4"}}, "type": "BOOKMARK"}"#;
    assert!(matches!(parse(mark), Ok(WatchLine::Bookmark(Some(it), false)) if it == "4"));
    let error =
        r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too\nold"}}"#;
    assert!(matches!(parse(error), Ok(WatchLine::Refusal(410, it)) if it == "too old"));
    assert!(matches!(parse(r#"{"type": "NEW", "object": {}}"#), Ok(WatchLine::Unknown)));
    assert!(parse(r#"{"type": "ADDED", "object": {"#).is_err());
}

#[test]
fn the_order_and_the_spaces_of_a_line_do_not_matter() {
    let header =
        |line: String| match WatchLine::parse(&Bytes::from(line), &RecentObjects::default()) {
            Ok(WatchLine::Event(kind, object)) => {
                (kind, object.header().clone(), object.body().to_string())
            }
            other => panic!("{other:?}"),
        };
    let object =
        r#"{"kind":"A","metadata":{"name":"n","managedFields":[{}]},"spec":{"text":"}}"}}"#;
    for (word, kind) in [
        ("ADDED", EventType::Added),
        ("MODIFIED", EventType::Modified),
        ("DELETED", EventType::Deleted),
    ] {
        let usual = header(format!(r#"{{"type":"{word}","object":{object}}}"#));
        assert_eq!(usual.0, kind);
        assert_eq!(usual, header(format!(r#"{{ "object": {object}, "type": "{word}" }}"#)));
        assert_eq!(usual, header(format!(r#"{{"type":"{word}","object":{object},"more":{{}}}}"#)));
    }
}

#[test]
fn a_line_that_is_not_text_is_malformed() {
    let line = b"{\"type\":\"ADDED\",\"object\":{\"spec\":{\"text\":\"\xff\"}}}";
    assert!(WatchLine::parse(&Bytes::from_static(line), &RecentObjects::default()).is_err());
}
