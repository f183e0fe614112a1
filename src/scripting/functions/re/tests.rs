//! Long strings are searched in other ways than short ones, with the same result.

use regex::Regex;
use regex_automata::Span;

use super::{
    pattern::{Pattern, Patterns},
    search::Search,
    threads::{self, Haystack},
};

/// Patterns with everything that may make a difference: greediness, preferences, boundaries, empty matches, groups that capture
/// nothing.
const PATTERNS: &[&str] = &[
    "a",
    "ab*",
    "a*",
    "a*?",
    "(a)|(b)",
    "(a|ab)(c|bcd)*",
    "(a+?)(a*)",
    "^a",
    "b$",
    "(?m)^(.*)$",
    r"\bb",
    r"\Ba",
    r"(\w+)\s*(\d)?",
    "(?i)ÄB|ö",
    "x*",
    "",
    "(?:)",
    "(a(b)?)+",
    "(?s).*",
    "(?s)(.*?)b",
    "[^a]+",
    r"\pL+",
    "(z)?",
    "(?:a|b|ä){2,3}",
    "é?",
    "b+(?-u:\\b)",
];

/// Characters of one to four bytes.
const TEXTS: &[&str] = &[
    "",
    "a",
    "abcd abcd",
    "aabbaab\nbba b1 ä b",
    "äöü ÄBÖ a😀b",
    "ababä ab 12\n",
    "zz ab",
    "日本 a\nb",
];

fn slow(patterns: &Patterns, pattern: &str, text: &str) -> Vec<Vec<Option<(usize, usize)>>> {
    let pattern = patterns.get(pattern).unwrap();
    let mut search = Search::step_by_step(&pattern, text).unwrap();
    let mut all = Vec::new();
    while let Some(found) = search.next().unwrap() {
        let place = Haystack { text: text.as_bytes(), span: found, is_anchored: true };
        let nfa = &pattern.stepwise().unwrap().nfa;
        let groups = threads::search(nfa, place, true).unwrap().unwrap();
        all.push(groups.into_iter().map(pair).collect());
    }
    assert_eq!(Search::step_by_step(&pattern, text).unwrap().tests().unwrap(), !all.is_empty());
    all
}

fn pair(span: Option<Span>) -> Option<(usize, usize)> {
    span.map(|it| (it.start, it.end))
}

#[test]
fn searches_step_by_step_and_at_once_have_the_same_result() {
    let patterns = Patterns::default();
    for pattern in PATTERNS {
        let regex = Regex::new(pattern).unwrap();
        for text in TEXTS {
            let range = |it: regex::Match<'_>| (it.start(), it.end());
            let caught = regex.captures_iter(text);
            let expected: Vec<Vec<_>> =
                caught.map(|it| it.iter().map(|it| it.map(range)).collect()).collect();
            assert_eq!(slow(&patterns, pattern, text), expected, "{pattern} in {text:?}");
        }
    }
}

#[test]
fn the_slow_search_finds_the_same_match() {
    let patterns = Patterns::default();
    for pattern in PATTERNS {
        let (regex, compiled) = (Regex::new(pattern).unwrap(), patterns.get(pattern).unwrap());
        let nfa = &Pattern::stepwise(&compiled).unwrap().nfa;
        for text in TEXTS {
            let span = Span::from(0..text.len());
            let place = Haystack { text: text.as_bytes(), span, is_anchored: false };
            let found = threads::search(nfa, place, false).unwrap();
            let found = found.and_then(|it| pair(it[0]));
            let expected = regex.find(text).map(|it| (it.start(), it.end()));
            assert_eq!(found, expected, "{pattern} in {text:?}");
        }
    }
}
