//! How a plan is compared and shown.

use serde_json::{Value, json};

use super::{
    changes::{ChangeAction, ObjectChange, PlannedChanges, compare},
    output,
};
use crate::logic::object::diff::Diff;

fn compared(old: &Value, new: &Value) -> Diff {
    let mut diff = Diff::new();
    compare(&mut Vec::new(), Some(old), Some(new), &mut diff);
    diff
}

/// Returns the lines of one changed object.
fn lines(old: &Value, new: &Value) -> Vec<String> {
    let key = ("things.example.com".to_owned(), "ns1".to_owned(), "one".to_owned());
    let change = ObjectChange { action: ChangeAction::Update, key, fields: compared(old, new) };
    let changes = PlannedChanges { objects: vec![change], ..PlannedChanges::default() };
    let text = output::text(&changes, &output::Failures::default());
    text.lines().filter_map(|it| it.strip_prefix("    ")).map(str::to_owned).collect()
}

#[test]
fn fields_are_compared_item_by_item() {
    let old = json!({ "a": 1, "list": [{ "x": 1 }, { "y": 2 }], "gone": { "b": true }, "same": [1], "null": null });
    let new = json!({ "a": "1", "list": [{ "x": 1 }, { "y": 3 }], "new": [{ "c": 1 }], "same": [1], "plain": ["a"] });
    assert_eq!(
        lines(&old, &new),
        [
            "a: 1 -> \"1\"",
            "list[1].y: 2 -> 3",
            "gone.b: true -> (removed)",
            "new[0].c: 1",
            "plain: [\"a\"]",
        ]
    );
}

#[test]
fn lists_of_another_length_and_other_types_are_one_change() {
    assert_eq!(lines(&json!({ "a": [1, 2] }), &json!({ "a": [1] })), ["a: [1,2] -> [1]"]);
    assert_eq!(lines(&json!({ "a": [1] }), &json!({ "a": { "b": 1 } })), ["a: [1] -> {\"b\":1}"]);
    assert_eq!(lines(&json!({ "a": "x" }), &json!({ "a": null })), ["a: \"x\" -> (removed)"]);
    assert_eq!(lines(&json!({ "a": {} }), &json!({})), [""; 0], "an empty map is as none");
}

#[test]
fn long_values_and_many_fields_are_shortened() {
    let long = lines(&json!({}), &json!({ "a": "x".repeat(1000) }));
    assert_eq!(long.first().map(|it| it.chars().count()), Some("a: ".len() + 121));
    let many: Value =
        (0..70).map(|it| (format!("f{it}"), json!(it))).collect::<serde_json::Map<_, _>>().into();
    let lines = lines(&json!({}), &many);
    assert_eq!(lines.last().map(String::as_str), Some("… and 10 fields; all: -o json"));
    assert_eq!(lines.len(), 61);
}

#[test]
fn a_value_does_not_control_the_terminal() {
    let lines = lines(&json!({}), &json!({ "a\u{1b}[2J": "\u{1b}[2J" }));
    assert!(!lines.concat().contains('\u{1b}'), "{lines:?}");
}
