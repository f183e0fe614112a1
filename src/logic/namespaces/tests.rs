//! Claims about patterns beyond the vectors.

use super::*;

#[test]
fn many_stars_are_matched_in_reasonable_time() {
    let pattern = NamespacePattern::new("*a".repeat(30) + "b");
    assert!(!pattern.matches(&"a".repeat(10_000)));
}

#[test]
fn an_unclosed_bracket_stands_for_itself() {
    assert!(NamespacePattern::new("[ab").matches("[ab"));
    assert!(!NamespacePattern::new("[ab").matches("a"));
}

#[test]
fn a_set_may_begin_with_its_closing_bracket() {
    assert!(NamespacePattern::new("[]a]").matches("]"));
    assert!(NamespacePattern::new("[!]a]").matches("b"));
}
