//! Cases that the vectors do not cover.

use serde_json::json;

use super::*;

fn examined(body: Value, extra: &[&str]) -> Change {
    let extra = extra.iter().map(|it| fields::split(it)).collect();
    let object = Object::from_value(body);
    examine(&PersistenceSettings::default(), &object, Some(EventType::Modified), false, &extra)
        .unwrap()
}

#[test]
fn a_deleted_event_is_gone_even_with_our_finalizer() {
    let facts = ChangeFacts {
        removed: true,
        deleting: true,
        held: true,
        essence: Essence::Changed,
        initial: false,
    };
    assert_eq!(detect(facts), Reason::Gone);
}

#[test]
fn the_stored_essence_is_not_a_change() {
    let mut body =
        json!({"spec": {"ratio": 0.1, "big": 1e22, "n": null}, "metadata": {"labels": {}}});
    let first = examined(body.clone(), &[]);
    assert_eq!(first.reason, Reason::Create);
    let mut patch = serde_json::Map::new();
    diffbase::store(
        &PersistenceSettings::default().diffbase_storage,
        &body,
        &first.new,
        &mut patch,
    );
    body["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
    assert_eq!(examined(body, &[]).reason, Reason::Noop);
}

#[test]
fn an_extra_field_below_a_scalar_is_absent() {
    let change = examined(json!({"status": null, "spec": 1}), &["status.phase", "spec.x"]);
    assert_eq!(*change.new, json!({"spec": 1}));
}

#[test]
fn fields_of_sub_handlers_are_relative_to_the_field_of_the_parent() {
    let change = examined(json!({"spec": {"a": {"b": 1}}}), &[]);
    let parent = change.narrowed(Some(&fields::split("spec.a")));
    let child = parent.narrowed(Some(&fields::split("b")));
    assert_eq!(*child.new, json!(1));
    assert_eq!(child.diff.len(), 1);
    assert!(child.diff[0].field.is_empty());
    let absent = child.narrowed(Some(&fields::split("c")));
    assert_eq!((absent.old, &*absent.new, absent.diff.len()), (None, &Value::Null, 0));
}

#[test]
fn damaged_state_names_the_annotation_to_repair() {
    let name = "kopf.zalando.org/last-handled-configuration";
    let object = Object::from_value(json!({"metadata": {"annotations": {name: "{"}}}));
    let error = examine(&PersistenceSettings::default(), &object, None, true, &BTreeSet::new())
        .unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn the_form_of_the_stored_text_does_not_matter() {
    let name = "kopf.zalando.org/last-handled-configuration";
    let stored = r#" { "spec" : {"b": 1e0, "a": "\u0061", "c": null} } "#;
    let body = json!({"metadata": {"annotations": {name: stored}}, "spec": {"a": "a", "b": 1}});
    let change = examined(body, &[]);
    assert_eq!(change.reason, Reason::Noop);
    assert_ne!(change.old.as_ref(), Some(&change.new));
}
