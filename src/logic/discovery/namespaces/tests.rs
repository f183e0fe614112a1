//! Patterns: cases that the vectors do not cover.

use serde_json::json;

use super::*;
use crate::logic::object::reason::EventType;

fn terminating(statuses: &[&str]) -> serde_json::Value {
    let conditions = statuses
        .iter()
        .map(|it| json!({ "status": it, "reason": "SomeContent", "message": "two pods are left" }));
    json!({
        "metadata": { "name": "ns1", "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "status": { "conditions": conditions.collect::<Vec<_>>() },
    })
}

#[test]
fn a_terminating_namespace_is_served_until_nothing_blocks_its_end() {
    let modified = |body| namespace_state(Some(EventType::Modified), &body);
    assert_eq!(modified(json!({ "metadata": { "name": "ns1" } })), NamespaceState::Served);
    assert_eq!(modified(terminating(&[])), NamespaceState::Served, "it was not checked yet");
    assert_eq!(
        modified(terminating(&["False", "True"])),
        NamespaceState::Pending(vec![
            "Namespace 'ns1' termination pending: SomeContent: two pods are left".into()
        ])
    );
    assert_eq!(modified(terminating(&["False", "False"])), NamespaceState::Gone);
}

#[test]
fn a_deleted_namespace_is_gone_whatever_its_last_conditions_were() {
    assert_eq!(
        namespace_state(Some(EventType::Deleted), &terminating(&["True"])),
        NamespaceState::Gone
    );
}

#[test]
fn many_stars_are_matched_in_reasonable_time() {
    let pattern = NamespacePattern::new("*a".repeat(30) + "b");
    assert!(!pattern.matches(&"a".repeat(10_000)));
}

#[test]
fn an_unclosed_bracket_matches_itself() {
    assert!(NamespacePattern::new("[ab").matches("[ab"));
    assert!(!NamespacePattern::new("[ab").matches("a"));
}

#[test]
fn a_set_may_begin_with_its_closing_bracket() {
    assert!(NamespacePattern::new("[]a]").matches("]"));
    assert!(NamespacePattern::new("[!]a]").matches("b"));
}

#[test]
fn a_regular_expression_is_about_whole_names() {
    let pattern = NamespacePattern::regex("app-[0-9]+|other").unwrap();
    for (name, matches) in [
        ("app-1", true),
        ("other", true),
        ("my-app-1", false),
        ("app-1-x", false),
        ("others", false),
    ] {
        assert_eq!(pattern.matches(name), matches, "{name}");
    }
    assert_eq!(pattern.exact(), None);
    assert_eq!(
        NamespacePattern::regex("plain").unwrap().exact(),
        None,
        "it may be meant otherwise"
    );
    for wrong in ["(", "a)|(b"] {
        assert!(NamespacePattern::regex(wrong).is_err(), "{wrong}");
    }
}
