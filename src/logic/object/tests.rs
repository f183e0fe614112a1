//! Reading of objects.

use serde_json::json;

use super::*;

fn parsed(body: &Value) -> Object {
    Object::parse(body.to_string().into()).unwrap()
}

fn typical() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "metadata": {
            "managedFields": [{"manager": "kubectl"}],
            "name": "n1", "namespace": "ns1", "uid": "u1", "resourceVersion": "5",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "",
            "labels": {"l": "1"}, "annotations": {"a": "\u{e9}\n"}, "finalizers": ["f", "g"],
        },
        "spec": {"x": [1, 2.5, null, true, {"y": -3}]},
        "kind": "KopfExample",
    })
}

#[test]
fn the_header_is_the_same_from_bytes_and_from_a_tree() {
    let body = typical();
    let header = parsed(&body).header().clone();
    assert_eq!(&header, Object::from_value(body).header());
    assert_eq!(header.kind, "KopfExample");
    assert_eq!(header.uid.as_deref(), Some("u1"));
    assert_eq!(header.deletion_timestamp.as_deref(), Some(""));
    assert_eq!(header.annotations["a"], "\u{e9}\n");
    assert_eq!(header.finalizers, ["f", "g"]);
}

#[test]
fn of_repeated_keys_the_last_one_is_used() {
    let text = r#"{"kind": "A", "metadata": {"name": "n", "labels": {"a": "1"}, "labels": {"b": "2"}, "uid": "u", "uid": 5},
        "metadata": {"finalizers": ["f"], "finalizers": ["g", 1], "namespace": "x", "namespace": "ns"}, "apiVersion": "v1", "kind": "K"}"#;
    let header = Object::parse(Bytes::from_static(text.as_bytes())).unwrap().header().clone();
    let finalizers = vec!["g".to_owned()];
    let (api_version, kind) = ("v1".to_owned(), "K".to_owned());
    let namespace = Some("ns".to_owned());
    assert_eq!(header, Header { api_version, kind, namespace, finalizers, ..Header::default() });
    let text = r#"{"metadata": {"labels": {"a": "1"}, "labels": {"b": "2"}, "uid": "u", "uid": 5, "annotations": {"a": "1"}, "annotations": 1}}"#;
    let header = Object::parse(Bytes::from_static(text.as_bytes())).unwrap().header().clone();
    let labels = Map::from_iter([("b".to_owned(), "2".into())]);
    assert_eq!(header, Header { labels, ..Header::default() });
}

#[test]
fn managed_fields_never_reach_the_tree() {
    let mut expected = typical();
    expected["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
    assert_eq!(**parsed(&typical()).body(), expected);
    assert_eq!(**Object::from_value(typical()).body(), expected);
    let elsewhere = json!({"spec": {"managedFields": 1, "metadata": {"managedFields": 2}}});
    assert_eq!(**parsed(&elsewhere).body(), elsewhere);
}

#[test]
fn the_essential_bytes_lack_nothing_but_managed_fields() {
    let text = r#"{ "a\n\u0000": 1.50, "metadata": {"name":"n", "managedFields":[{"x":1}], "labels": {"b":"c"}},
        "spec": {"managedFields": [1], "metadata": {"managedFields": 2}}, "kind":"K" }"#;
    let object = Object::parse(Bytes::from_static(text.as_bytes())).unwrap();
    let kept = object.essential_bytes();
    assert!(kept.len() < text.len() - r#""managedFields":[{"x":1}]"#.len());
    let kept = Object::parse(kept.into()).unwrap();
    assert_eq!(kept.header(), object.header());
    assert_eq!(kept.body(), object.body());
    for metadata in ["null", "[]", "1", r#"{"managedFields":{}}"#, "{}"] {
        let text = format!(r#"{{"metadata":{metadata}}}"#);
        let object = Object::parse(text.into()).unwrap();
        let kept = Object::parse(object.essential_bytes().into()).unwrap();
        assert_eq!(kept.body(), object.body());
    }
    assert!(Object::from_value(typical()).essential_bytes().is_empty());
}

#[test]
fn managed_fields_are_cut_out_wherever_they_are() {
    let all_fields = [
        r#"[{"fieldsV1":{"f:x":"]}\",{"}}]"#,
        r#"[{"manager":"m","fieldsV1":{"f:spec":{".":{},"f:x":{}}},"time":"T"},{"manager":"n"}]"#,
        r#"[{"manager":"a]b"},{"manager":"m"}]"#,
        r#"[{"manager":"]"}]"#,
        r#"[{"manager":"[","fieldsV1":[[],[1,{}],"]"]}]"#,
        "[]",
        "[1]",
        "{}",
        "null",
    ];
    let all_texts = [
        (
            r#"{"kind":"K","metadata":{"name":"n","managedFields":M,"uid":"u"}}"#,
            r#""name":"n","uid":"u""#,
        ),
        (r#"{"metadata":{"managedFields":M,"name":"n"},"spec":{}}"#, r#""name":"n""#),
        (r#"{"metadata":{"name":"n","managedFields":M}}"#, r#""name":"n""#),
        (r#"{"metadata":{"managedFields":M}}"#, ""),
        (
            r#"{"metadata":{"name":"n", "managedFields" : M , "uid":"u"}}"#,
            r#""name":"n", "uid":"u""#,
        ),
        (r#"{"metadata":{"managedFields":M , "name":"n"}}"#, r#""name":"n""#),
        (
            r#"{"spec":{"managedFields":M},"metadata":{"managedFields":M,"name":"n"}}"#,
            r#""name":"n""#,
        ),
        (r#"{"spec":{"managedFields":M},"metadata":{"name":"n"}}"#, r#""name":"n""#),
        (
            r#"{"data":{"a":"\"managedFields"},"metadata":{"name":"managedFields"}}"#,
            r#""name":"managedFields""#,
        ),
        (r#"{"x\"metadata":{"managedFields":M},"metadata":{"name":"n"}}"#, r#""name":"n""#),
        (
            r#"{"metadata":{"labels":{"managedFields":"x"},"name":"n"}}"#,
            r#""labels":{"managedFields":"x"},"name":"n""#,
        ),
    ];
    let each_with_each =
        all_fields.iter().flat_map(|fields| all_texts.iter().map(move |it| (fields, it)));
    for (fields, (text, rest)) in each_with_each {
        let text = text.replace('M', fields);
        let mut expected: Value = serde_json::from_str(&text).expect("JSON");
        expected["metadata"] = serde_json::from_str(&format!("{{{rest}}}")).expect(rest);
        let item = Object::parse_item(text.as_bytes(), ("", "")).expect("an object");
        for object in [Object::parse(text.clone().into()).expect("an object"), item] {
            let kept: Value = serde_json::from_slice(&object.essential_bytes()).expect("JSON");
            assert_eq!(kept, expected, "{text}");
            assert_eq!(**object.body(), expected, "{text}");
            assert_eq!(object.header().name.as_deref(), expected["metadata"]["name"].as_str());
        }
    }
}

/// What reads the text later has nothing to skip.
#[test]
fn an_object_does_not_keep_managed_fields_as_servers_write_them() {
    let text = r#"{"kind":"K","metadata":{"name":"n","managedFields":[{"manager":"m","fieldsV1":{"f:x":{}}}],"uid":"u"},"spec":{}}"#;
    let kept = r#"{"kind":"K","metadata":{"name":"n","uid":"u"},"spec":{}}"#;
    let item = Object::parse_item(text.as_bytes(), ("a/v1", "K")).unwrap();
    assert_eq!(Object::parse(text.into()).unwrap().raw(), kept.as_bytes());
    assert_eq!(item.raw(), kept.replacen('{', r#"{"apiVersion":"a/v1","#, 1).as_bytes());
    // Reviews of admission have them.
    assert_eq!(Object::parse_as_tape(text.into()).unwrap().raw(), text.as_bytes());
}

#[test]
fn items_of_lists_have_the_type_of_the_list_unless_they_have_one() {
    let of_list = ("a/v1", "K");
    for (item, of, whole) in [
        ("{}", of_list, r#"{"apiVersion":"a/v1","kind":"K"}"#),
        (r#" { "x":1}"#, of_list, r#"{"apiVersion":"a/v1","kind":"K", "x":1}"#),
        (r#"{"kind":"Own","x":1}"#, of_list, r#"{"apiVersion":"a/v1","kind":"Own","x":1}"#),
        (r#"{"kind":null,"apiVersion":"b"}"#, of_list, r#"{"kind":null,"apiVersion":"b"}"#),
        (r#"{"x":1}"#, ("", ""), r#"{"x":1}"#),
        ("{}", ("", ""), "{}"),
    ] {
        let object = Object::parse_item(item.as_bytes(), of).expect(item);
        let same = Object::parse(whole.to_owned().into()).expect(whole);
        assert_eq!((object.header(), object.size()), (same.header(), whole.len()), "{item}");
        assert_eq!(object.body(), same.body(), "{item}");
    }
    assert!(Object::parse_item(b"[]", of_list).is_err());
}

#[test]
fn unexpected_content_reads_as_absent() {
    let body = json!({
        "apiVersion": 1, "kind": ["x"],
        "metadata": {
            "name": {"a": 1}, "uid": null, "labels": null, "annotations": [1], "finalizers": {"x": 1},
            "deletionTimestamp": false,
        },
    });
    assert_eq!(parsed(&body).header(), &Header::default());
    let body = json!({"metadata": {"finalizers": [1, "f", null], "labels": {"n": null}}});
    let header = parsed(&body).header().clone();
    assert_eq!(header.finalizers, ["f"]);
    assert_eq!(header.labels["n"], Value::Null);
    for metadata in [json!(null), json!("x"), json!(1.5), json!([])] {
        let body = json!({"metadata": metadata, "kind": "K"});
        assert_eq!(parsed(&body).header().kind, "K");
        assert_eq!(**parsed(&body).body(), body);
    }
}

#[test]
fn the_order_of_keys_is_kept() {
    let text = r#"{"z":1,"metadata":{"name":"n","a":1},"a":{"c":1,"b":2}}"#;
    let object = Object::parse(Bytes::from_static(text.as_bytes())).unwrap();
    assert_eq!(object.body().to_string(), text);
}

#[test]
fn a_value_that_is_not_an_object_is_an_error() {
    for text in ["", "[]", "1", "{", "{} {}", r#"{"metadata":{"name":"n"}"#] {
        assert!(Object::parse(Bytes::from_static(text.as_bytes())).is_err(), "{text}");
    }
}

/// Returns an object with this number of levels, itself included.
fn of_levels(levels: usize) -> Bytes {
    let inner = levels - 1;
    format!(
        r#"{{"metadata":{{"name":"n","annotations":{{"a":"[[\"\\{{"}}}},"spec":{}1{}}}"#,
        "[".repeat(inner),
        "]".repeat(inner)
    )
    .into()
}

#[test]
fn a_deep_object_is_read_in_full_or_not_at_all() {
    for levels in [2, 127, 128, 129, 1000, depth::DEPTH_MAX] {
        let object = Object::parse(of_levels(levels)).unwrap();
        assert_eq!(object.problem(), None, "{levels} levels");
        assert_eq!(object.body().to_string().as_bytes(), of_levels(levels), "{levels} levels");
        let kept = Object::parse(object.essential_bytes().into()).unwrap();
        assert_eq!(kept.body(), object.body());
    }
    for levels in [depth::DEPTH_MAX + 1, 10_000, 1_000_000] {
        let object = Object::parse(of_levels(levels)).unwrap();
        assert_eq!(object.problem(), Some(Unreadable::Depth(levels)));
        assert!(object.body().is_null());
        assert_eq!(object.header().name.as_deref(), Some("n"));
    }
}

#[test]
fn managed_fields_do_not_count_as_depth() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let text = format!(
        r#"{{"metadata":{{"name":"n","managedFields":{}}},"spec":{}}}"#,
        deep(5000),
        deep(1000)
    );
    let object = Object::parse(text.into()).unwrap();
    assert_eq!(object.problem(), None);
    assert_eq!(object.body()["metadata"], json!({ "name": "n" }));
    assert!(object.body()["spec"].is_array());
}

#[test]
fn damaged_json_is_a_problem_and_no_empty_object() {
    let object = Object::parse(Bytes::from_static(br#"{"spec":"\ud800"}"#)).unwrap();
    object.body();
    assert_eq!(object.problem(), Some(Unreadable::Damaged));
}

/// Checks that processing a body needs no more stack than test threads have.
#[test]
fn the_deepest_body_can_be_compared_copied_and_stored() {
    use crate::logic::object::{diff, diffbase, essence};
    let persistence = crate::settings::PersistenceSettings::default();
    let (mut old, new) = (of_levels(depth::DEPTH_MAX).to_vec(), of_levels(depth::DEPTH_MAX));
    let one = old.iter().position(|it| *it == b'1').unwrap();
    old[one] = b'2';
    let (old, new) = (Object::parse(old.into()).unwrap(), Object::parse(new).unwrap());
    let (old, new) = (Value::clone(old.body()), Value::clone(new.body()));
    assert!(old != new && !kopf_json::values::equal(&old, &new));
    assert_eq!(diff::diff(&old, &new).len(), 1);
    let essence = essence::of(&persistence, &new, &std::collections::BTreeSet::new());
    let mut patch = Map::new();
    diffbase::store(&persistence.diffbase_storage, &new, &essence, &mut patch);
    let mut stored = new.clone();
    json_patch::merge(&mut stored, &Value::Object(patch));
    assert_eq!(diffbase::fetch(&persistence.diffbase_storage, &stored).unwrap(), Some(essence));
    assert!(!json_patch::diff(&old, &new).is_empty());
    assert_eq!(kopf_json::values::fingerprint(&new), kopf_json::values::fingerprint(&new.clone()));
    assert!(kopf_json::values::encode(&new).contains("[[[["));
}
