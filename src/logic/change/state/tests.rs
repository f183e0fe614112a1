//! Cases that the vectors do not cover.

use serde_json::json;

use super::*;
use crate::settings::Persistence;

fn moment() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn ids(ids: &[&str]) -> Vec<Arc<str>> {
    ids.iter().map(|it| Arc::from(*it)).collect()
}

#[test]
fn a_handler_that_succeeds_at_once_leaves_no_trace() {
    let storage = Persistence::default().progress_storage;
    let (body, mut patch) = (json!({}), Map::new());
    let handlers = ids(&["a"]);
    let mut state = State::load(&storage, &body, &handlers, moment()).unwrap();
    state.begin(Reason::Create, &handlers, moment());
    assert!(state.awakened("a", moment()));
    state.apply("a", &Outcome { last: true, ..Outcome::default() }, moment());
    state.store(&storage, &body, &mut patch);
    assert!(!patch.is_empty());
    assert!(state.done());
    state.purge(&storage, &body, &mut patch, &handlers);
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
    let storage = Persistence::default().progress_storage;
    let error = State::load(&storage, &body, &ids(&["a"]), moment()).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn a_null_is_no_result() {
    let mut patch = Map::new();
    deliver(&mut patch, "a", &Value::Null).unwrap();
    assert!(patch.is_empty());
}
