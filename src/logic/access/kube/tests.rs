//! Responses and namespaces, by cases.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    DefaultNamespaces, Delta, KnownResources, KubeVerb, ListPart, Predicate, Reference,
    ResourceRef, StatusDetails, Subject, Unresolved, WatchCache, advice, one, read_list,
    read_object, read_raw_list, selector, several, without_nulls,
};
use crate::logic::{
    handlers::selector::Selector,
    object::{Header, reason::EventType, resource::Resource},
};

fn resource(group: &str, plural: &str, kind: &str) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: kind.into(),
        singular: kind.to_lowercase(),
        shortcuts: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        ..Resource::default()
    }
}

fn named(text: &str) -> ResourceRef {
    ResourceRef::Selector(Selector::of_text(text).unwrap())
}

fn kind(group: &str, kind: &str) -> ResourceRef {
    ResourceRef::Kind { group: group.into(), version: "v1".into(), kind: kind.into() }
}

#[test]
fn a_name_is_certain_when_the_core_group_has_it_or_all_groups_are_known() {
    let mut known = KnownResources::default();
    assert_eq!(known.find(&named("pods")), None);
    known.learn(Some("metrics"), vec![resource("metrics", "pods", "PodMetrics")]);
    assert_eq!(known.find(&named("pods")), None, "the core group may have it");
    known.learn(Some(""), vec![resource("", "pods", "Pod")]);
    assert_eq!(known.find(&named("pods")).unwrap().unwrap().kind, "Pod");
    assert_eq!(known.find(&named("pods.metrics")).unwrap().unwrap().kind, "PodMetrics");
    known.learn(Some("apps"), vec![resource("apps", "deployments", "Deployment")]);
    assert_eq!(known.find(&named("deployments")), None, "another group may have it too");
    assert_eq!(known.find(&kind("apps", "Deployment")).unwrap().unwrap().plural, "deployments");
    assert_eq!(named("deployments").groups_to_read(), [Some(String::new()), None]);
    assert_eq!(kind("apps", "Deployment").groups_to_read(), [Some("apps".to_owned())]);
}

#[test]
fn errors_of_unknown_and_ambiguous_resources_are_helpful() {
    let mut known = KnownResources::default();
    let all = [("a.dev", "things", "Thing"), ("b.dev", "things", "Thing"), ("", "pods", "Pod")];
    known.learn(None, all.map(|(group, plural, kind)| resource(group, plural, kind)).into());
    let told = |wanted: &ResourceRef| known.find(wanted).unwrap().unwrap_err().message(wanted);
    assert_eq!(
        told(&named("things")),
        "'things' is ambiguous: it can be things.v1.a.dev or things.v1.b.dev; name the group too"
    );
    assert_eq!(
        told(&named("podz")),
        "the cluster has no resource 'podz' (did you mean 'pods'?): is its CRD installed?"
    );
    assert_eq!(
        told(&kind("", "Unicorn")),
        "the cluster has no resource Unicorn of v1: is its CRD installed?"
    );
    known.forget("a.dev");
    assert_eq!(known.find(&named("things")), None);
    assert_eq!(known.find(&kind("a.dev", "Thing")), None);
    known.learn(Some("a.dev"), Vec::new());
    let gone = known.find(&kind("a.dev", "Thing")).unwrap();
    assert_eq!(gone, Err(Unresolved::Gone), "it was there before");
    let told = |wanted: &ResourceRef| known.find(wanted).unwrap().unwrap_err().message(wanted);
    assert!(told(&kind("a.dev", "Thing")).contains("does not serve Thing of a.dev/v1 at present"));
    assert!(told(&kind("a.dev", "Thong")).ends_with("is its CRD installed?"));
}

#[test]
fn an_object_and_a_reference_name_the_same() {
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b", "uid": "c"},
    });
    let flat = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "namespace": "b", "uid": "c"});
    let expected = Reference {
        resource: kind("apps", "Deployment"),
        name: Some("a".into()),
        namespace: Some("b".into()),
        uid: Some("c".into()),
    };
    assert_eq!(Reference::of(&body), Ok(expected.clone()));
    assert_eq!(Reference::of(&flat), Ok(expected));
    for lacking in [json!({}), json!({"apiVersion": "v1"}), json!({"apiVersion": "", "kind": "X"})]
    {
        assert!(Reference::of(&lacking).unwrap_err().contains("the object has no `"), "{lacking}");
    }
}

#[test]
fn a_namespace_is_that_of_the_option_the_object_the_handled_one_or_the_credentials() {
    let pods = resource("", "pods", "Pod");
    let home = DefaultNamespaces { handled: Some("handled"), credentials: "credentials" };
    let place = |option, own, home| one(&pods, (option, own), home).map(Option::unwrap_or_default);
    assert_eq!(place(Some("a"), None, home), Ok("a".into()));
    assert_eq!(place(None, Some("a"), home), Ok("a".into()));
    assert_eq!(place(Some("a"), Some("a"), home), Ok("a".into()));
    assert_eq!(place(None, None, home), Ok("handled".into()));
    assert_eq!(
        place(None, None, DefaultNamespaces { handled: None, ..home }),
        Ok("credentials".into())
    );
    place(Some("a"), Some("b"), home).unwrap_err();
    place(Some("*"), None, home).unwrap_err();
    let wide = Resource { namespaced: false, ..pods.clone() };
    assert_eq!(
        one(&wide, (None, Some("a")), home),
        Ok(None),
        "what a body says is no matter there"
    );
    one(&wide, (Some("a"), None), home).unwrap_err();
    assert_eq!(several(&pods, None, home), Ok(Some("handled".into())));
    assert_eq!(several(&pods, Some("*"), home), Ok(None));
    assert_eq!(several(&wide, None, home), Ok(None));
    assert_eq!(several(&wide, Some("*"), home), Ok(None));
    several(&wide, Some("a"), home).unwrap_err();
}

#[test]
fn a_selector_is_a_string_or_a_map() {
    assert_eq!(selector(&Value::Null), Ok(None));
    assert_eq!(selector(&json!("")), Ok(None));
    assert_eq!(selector(&json!("a in (b,c)")), Ok(Some("a in (b,c)".into())));
    assert_eq!(selector(&json!({"a": "b", "n": 1})), Ok(Some("a=b,n=1".into())));
    assert_eq!(selector(&json!({})), Ok(None));
    selector(&json!({"a": ["b"]})).unwrap_err();
}

#[test]
fn a_conflict_of_appliers_names_fields_and_managers() {
    let details = json!({"causes": [
        {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".data.a"},
        {"reason": "Other"},
    ]});
    let said = StatusDetails { reason: "Conflict".into(), details };
    assert_eq!(
        advice(KubeVerb::Apply, 409, &said),
        ".data.a belongs to \"kubectl\" using v1; omit these fields, or take them over with the option `force`"
    );
    assert_eq!(advice(KubeVerb::Read, 500, &said), "");
}

#[test]
fn predicates_look_at_conditions_and_at_the_existence_of_the_same_object() {
    let body = json!({
        "metadata": {"uid": "1"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle", "status": "False"}]},
    });
    let holds = |text: &str, body: Option<&Value>, uid: Option<&str>| {
        Predicate::parse(text).unwrap().holds(Subject { body, uid })
    };
    assert!(holds("condition=Ready", Some(&body), None));
    assert!(holds("condition=ready=true", Some(&body), Some("1")));
    assert!(!holds("condition=Ready", Some(&body), Some("2")), "another object");
    assert!(!holds("condition=Idle", Some(&body), None));
    assert!(holds("condition=Idle=False", Some(&body), None));
    assert!(!holds("condition=Idle=False", None, None));
    assert!(holds("deleted", None, None) && holds("deleted", Some(&body), Some("2")));
    assert!(!holds("deleted", Some(&body), Some("1")));
    assert!(holds("created", Some(&body), None) && !holds("created", None, None));
    for wrong in ["", "ready", "condition=", "condition=a="] {
        Predicate::parse(wrong).unwrap_err();
    }
}

fn header(name: &str, uid: &str, version: &str) -> Header {
    Header {
        name: Some(name.into()),
        uid: Some(uid.into()),
        resource_version: Some(version.into()),
        ..Header::default()
    }
}

#[test]
fn a_repeated_list_reports_only_changes() {
    let told = |kind| vec![Delta::Event(kind)];
    let names = |changes: Vec<Delta>| {
        let name = |it: Delta| match it {
            Delta::Gone(identity) => identity["metadata"]["name"].as_str().unwrap().to_owned(),
            Delta::Event(_) => panic!("not gone"),
        };
        changes.into_iter().map(name).collect::<Vec<_>>()
    };
    let mut sight = WatchCache::default();
    sight.begin();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(sight.see(None, &header(name, name, "1")), told(EventType::Added));
    }
    assert_eq!(sight.end(), []);
    let changed = sight.see(Some(EventType::Modified), &header("a", "a", "2"));
    assert_eq!(changed, told(EventType::Modified));
    let deleted = sight.see(Some(EventType::Deleted), &header("b", "b", "3"));
    assert_eq!(deleted, told(EventType::Deleted));
    sight.begin();
    assert_eq!(sight.see(None, &header("a", "a", "2")), [], "known already");
    assert_eq!(sight.see(None, &header("c", "c", "4")), told(EventType::Modified));
    let other = sight.see(None, &header("e", "e", "5"));
    assert_eq!(other, told(EventType::Added));
    assert_eq!(names(sight.end()), ["d"], "it went meanwhile");
    let again = sight.see(Some(EventType::Added), &header("c", "new", "6"));
    assert_eq!(again.last(), Some(&Delta::Event(EventType::Added)));
    assert_eq!(again.len(), 2, "the one before is gone");
}

#[test]
fn nulls_are_absent_fields() {
    let mut value = json!({"a": null, "b": {"c": null, "d": [{"e": null}, null]}});
    without_nulls(&mut value);
    assert_eq!(value, json!({"b": {"d": [{}, null]}}));
}

#[test]
fn an_object_is_read_without_managed_fields_and_nulls() {
    let raw = br#"{"kind":"Pod","metadata":{"name":"a","managedFields":[{"x":null}],"labels":{"b":null,"c":"d"}},
        "spec":{"metadata":{"managedFields":1},"list":[1,null,{"e":null}]},"status":null}"#;
    let read = read_object(raw).expect("an object");
    let expected = json!({
        "kind": "Pod",
        "metadata": { "name": "a", "labels": { "c": "d" } },
        "spec": { "metadata": { "managedFields": 1 }, "list": [1, null, {}] },
    });
    assert_eq!(read, expected);
    for wrong in ["", "[]", "null", "{", "{} x"] {
        assert!(read_object(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn items_of_a_list_get_the_kind_and_version_they_lack() {
    let raw = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"t"},
        "items":[{"metadata":{"name":"a"}},{"kind":"X","metadata":{"managedFields":[]}}]}"#;
    let read = read_list(raw).expect("a list");
    assert_eq!(read.token.as_deref(), Some("t"));
    let first = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    assert_eq!(read.objects, [first, json!({ "apiVersion": "v1", "kind": "X", "metadata": {} })]);
    let empty = br#"{"kind":"PodList","metadata":{"continue":""},"items":null}"#;
    assert_eq!(read_list(empty).expect("a list"), ListPart::default());
    for wrong in ["", "[]", r#"{"items":[1]}"#, r#"{"items":{}}"#] {
        assert!(read_list(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_no_list_is_no_empty_list() {
    for page in ["<html>sign in</html>", "", "[]", "{}", r#"{"kind":"Status"}"#] {
        assert!(read_list(page.as_bytes()).is_err(), "{page}");
        assert!(read_raw_list(page.as_bytes()).is_err(), "{page}");
    }
    for page in ["<html>sign in</html>", "", "[]", r#""ok""#] {
        assert!(read_object(page.as_bytes()).is_err(), "{page}");
    }
    for list in [json!({ "kind": "PodList", "items": null }), json!({ "items": [] })] {
        let list = list.to_string();
        assert_eq!(read_list(list.as_bytes()).unwrap().objects, [] as [Value; 0]);
        assert_eq!(read_raw_list(list.as_bytes()).unwrap(), ListPart::default());
    }
}

#[test]
fn raw_objects_keep_their_managed_fields() {
    let object = json!({ "metadata": { "name": "a", "managedFields": [{ "manager": "m" }] } });
    let list = json!({ "metadata": { "continue": "next" }, "items": [object] }).to_string();
    let page = read_raw_list(list.as_bytes()).unwrap();
    assert_eq!((page.objects, page.token.as_deref()), (vec![object], Some("next")));
}

#[test]
fn deep_objects_are_read_in_full_or_not_at_all() {
    let object = |levels: usize| {
        let nest = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"kind":"X","metadata":{{"name":"n"}},"spec":{nest}}}"#)
    };
    let list = |levels: usize| format!(r#"{{"kind":"XList","items":[{}]}}"#, object(levels));
    for levels in [126, 127, 200, 1000] {
        let read = read_object(object(levels).as_bytes()).unwrap();
        assert_eq!(read.to_string(), object(levels));
        assert_eq!(read_list(list(levels).as_bytes()).unwrap().objects, [read]);
    }
    let error = read_object(object(2000).as_bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("it is nested 2001 levels deep; at most 1024 are supported"),
        "{error}"
    );
    read_list(list(2000).as_bytes()).unwrap_err();
}
