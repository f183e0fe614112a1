//! Selectors: cases that the vectors do not cover.

use serde_json::json;

use super::*;

fn parsed(texts: &[&str]) -> Selector {
    let arguments: Vec<_> = texts.iter().map(|it| Argument::Value(json!(it))).collect();
    Selector::parse(&arguments, Selector::default()).expect("a selector")
}

#[test]
fn a_selector_shows_only_the_fields_that_are_set() {
    assert_eq!(
        parsed(&["kopf.dev/v1", "kopfexamples"]).to_string(),
        "Selector(group='kopf.dev', version='v1', any_name='kopfexamples')"
    );
    assert_eq!(parsed(&["", "pods"]).to_string(), "Selector(group='', any_name='pods')");
}

#[test]
fn nulls_at_the_end_are_not_arguments() {
    let arguments = [Argument::Value("pods".into()), Argument::Absent];
    assert_eq!(Selector::parse(&arguments, Selector::default()), Ok(parsed(&["pods"])));
}

#[test]
fn a_table_instead_of_a_name_is_rejected_with_a_hint() {
    let arguments = [Argument::Value(json!({ "kind": "Pod" }))];
    let error = Selector::parse(&arguments, Selector::default()).expect_err("a refusal");
    assert!(error.hint.is_some());
}
