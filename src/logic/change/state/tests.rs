//! Cases that the vectors do not cover.

use serde_json::json;

use super::*;
use crate::settings::{AnnotationsProgress, PersistenceSettings, StatusProgress};

fn moment() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn ids(ids: &[&str]) -> Vec<Arc<str>> {
    ids.iter().map(|it| Arc::from(*it)).collect()
}

/// Adds all changed records to a patch.
fn store(
    state: &State,
    object: (&ProgressStorage, &Value),
    purged: &BTreeSet<&str>,
    patch: &mut Map<String, Value>,
) {
    state.entries().for_each(|(id, it)| it.store(id, object, purged, patch));
}

/// Removes these records.
fn purge(
    ids: &BTreeSet<&str>,
    (storage, body): (&ProgressStorage, &Value),
    patch: &mut Map<String, Value>,
) {
    for id in ids {
        progress::purge(storage, body, id, patch);
    }
}

#[test]
fn a_handler_that_succeeds_at_once_leaves_no_trace() {
    let storage = PersistenceSettings::default().progress_storage;
    let (body, mut patch) = (json!({}), Map::new());
    let handlers = ids(&["a"]);
    let mut state = State::load(&storage, &body, &handlers, moment()).unwrap();
    state.begin(Reason::Create, &handlers, moment());
    assert!(state.awakened("a", moment()));
    state.apply("a", &Outcome { last: true, ..Outcome::default() }, moment());
    store(&state, (&storage, &body), &BTreeSet::new(), &mut patch);
    assert!(!patch.is_empty());
    assert!(state.done());
    purge(&state.known(&handlers), (&storage, &body), &mut patch);
    assert!(patch.is_empty(), "{patch:?}");
}

#[test]
fn an_outcome_of_an_unknown_handler_changes_nothing() {
    let mut state = State::default();
    state.apply("nobody", &Outcome::default(), moment());
    assert!(state.record("nobody").is_none());
    assert!(state.done());
}

#[test]
fn a_damaged_record_fails_the_load_and_names_its_annotation() {
    let name = "kopf.zalando.org/a";
    let body = json!({"metadata": {"annotations": {name: "not json"}}});
    let storage = PersistenceSettings::default().progress_storage;
    let error = State::load(&storage, &body, &ids(&["a"]), moment()).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn a_null_is_no_result() {
    let mut patch = Map::new();
    deliver(&mut patch, "a", Value::Null).unwrap();
    assert!(patch.is_empty());
}

#[test]
fn results_that_are_too_many_together_are_refused_one_by_one() {
    let mut patch = Map::new();
    let result = || json!({ "list": vec![0; 9_000] });
    deliver(&mut patch, "a", result()).unwrap();
    deliver(&mut patch, "b", result()).unwrap();
    let refused = deliver(&mut patch, "c", result()).unwrap_err().to_string();
    let expected = "deliver the result of handler 'c': the patch would have more than 20000 items: 27007; keep them in a separate object, such as a ConfigMap";
    assert_eq!(refused, expected);
    let status = patch["status"].as_object().unwrap();
    assert_eq!(status.keys().collect::<Vec<_>>(), ["a", "b"]);
    deliver(&mut patch, "b", result()).expect("it replaces an earlier one");
}

/// Returns an object with records of a creation and of the deletion that has superseded it.
fn superseded(now: Timestamp) -> (ProgressStorage, Value, State) {
    let storage = PersistenceSettings::default().progress_storage;
    let record = |purpose: &str| ProgressRecord::new(moment(), Some(purpose)).format(false);
    let name = |id: &str| format!("kopf.zalando.org/{id}");
    let annotations = json!({ name("made"): record("create"), name("gone"): record("delete") });
    let body = json!({ "metadata": { "annotations": annotations } });
    let mut state = State::load(&storage, &body, &ids(&["made", "gone"]), now).unwrap();
    state.begin(Reason::Delete, &ids(&["gone"]), now);
    assert!(state.superseded().contains_key("create"));
    (storage, body, state)
}

#[test]
fn the_records_of_a_superseded_cause_are_removed_and_those_of_the_cause_stay() {
    let (storage, body, state) = superseded(moment());
    let mut patch = Map::new();
    purge(&state.others(&ids(&["made", "gone"])), (&storage, &body), &mut patch);
    store(&state, (&storage, &body), &BTreeSet::new(), &mut patch);
    let annotations = json!({ "kopf.zalando.org/made": null });
    assert_eq!(Value::Object(patch), json!({ "metadata": { "annotations": annotations } }));
}

#[test]
fn records_of_a_superseded_cause_are_removed_even_if_the_clock_was_set_back() {
    let before = moment() - jiff::SignedDuration::from_mins(5);
    let (storage, body, state) = superseded(before);
    let mut patch = Map::new();
    purge(&state.others(&ids(&["made", "gone"])), (&storage, &body), &mut patch);
    store(&state, (&storage, &body), &BTreeSet::new(), &mut patch);
    let annotations = &patch["metadata"]["annotations"];
    assert_eq!(annotations["kopf.zalando.org/made"], Value::Null);
    assert!(annotations["kopf.zalando.org/gone"].is_string(), "{annotations}");
}

#[test]
fn records_that_are_about_to_be_purged_are_not_stored_first() {
    let foreign = AnnotationsProgress { prefix: "example.com".into(), ..Default::default() };
    let (annotations, status) = (AnnotationsProgress::default(), StatusProgress::default());
    let record = ProgressRecord::new(moment(), Some("create"));
    for storage in [
        ProgressStorage::default(),
        ProgressStorage::Annotations(foreign.clone()),
        ProgressStorage::Status(status.clone()),
        ProgressStorage::Multi(vec![
            ProgressStorage::Annotations(foreign),
            ProgressStorage::Smart(annotations, status),
        ]),
    ] {
        let mut stored = Map::new();
        progress::store(&storage, &json!({}), "a", &record, &mut stored);
        for body in [json!({}), Value::Object(stored)] {
            let handlers = ids(&["a", "b"]);
            let mut state = State::load(&storage, &body, &handlers, moment()).unwrap();
            state.begin(Reason::Create, &handlers, moment());
            state.apply("a", &Outcome { last: true, ..Outcome::default() }, moment());
            let known = state.known(&handlers);
            let (mut patch, mut expected) = (Map::new(), Map::new());
            store(&state, (&storage, &body), &known, &mut patch);
            purge(&state.known(&handlers), (&storage, &body), &mut patch);
            store(&state, (&storage, &body), &BTreeSet::new(), &mut expected);
            purge(&state.known(&handlers), (&storage, &body), &mut expected);
            assert_eq!(patch, expected, "{storage:?} {body}");
        }
    }
}
