//! A mistake in a script, with its position.

use std::collections::BTreeSet;

use super::{
    rules::{Rule, RuleLevel},
    tree::Span,
};
use crate::scripting::{Columns, LoadError};

/// A mistake that the checker has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that it violates.
    pub rule: Rule,
    /// The message, with its position.
    pub error: LoadError,
    /// The option that would grant the access, and its value.
    pub grant: Option<(&'static str, String)>,
}

impl Finding {
    /// Returns the level of its rule.
    pub fn level(&self) -> RuleLevel {
        self.rule.level()
    }

    /// Returns its position, for sorting and for comparisons.
    pub(crate) fn place(&self) -> (&str, u32, u32) {
        let column = self.error.columns.map_or(0, |it| it.first);
        (&self.error.file, self.error.line.unwrap_or_default(), column)
    }
}

/// A finding whose position is an offset, not a line yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Raw {
    pub(super) span: Span,
    pub(super) rule: Rule,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The option that would grant the access, and its value.
    pub(super) grant: Option<(&'static str, String)>,
}

/// Returns the findings in a file, without those that comments allow.
pub(super) fn placed(file: &str, text: &str, raw: Vec<Raw>) -> Vec<Finding> {
    if raw.is_empty() {
        return Vec::new();
    }
    let lines: Vec<(usize, &str)> = lines(text).collect();
    let allowed = Allowed::of(&lines);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for raw in raw {
        let number = lines.partition_point(|(start, _)| *start <= raw.span.at);
        let Some((start, line)) = number.checked_sub(1).and_then(|it| lines.get(it)) else {
            continue;
        };
        if allowed.has(number, raw.rule) || !seen.insert(raw.clone()) {
            continue;
        }
        let before = raw.span.at.saturating_sub(*start);
        let column = line.get(..before).map_or(0, |it| it.chars().count());
        let rest = line.get(before..).unwrap_or_default();
        let marked = rest.get(..raw.span.len).unwrap_or(rest).chars().count();
        let count = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        let columns = Columns { first: count(column + 1), length: count(marked.max(1)) };
        found.push(Finding {
            rule: raw.rule,
            grant: raw.grant,
            error: LoadError {
                file: file.to_owned(),
                line: Some(count(number)),
                columns: Some(columns),
                source_line: Some((*line).to_owned()),
                message: raw.message,
                hint: raw.hint,
            },
        });
    }
    found
}

/// Returns the lines with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line.trim_end_matches('\r')))
    })
}

/// Returns whether a comment allows this rule in a line, counted from 1.
pub(super) fn is_allowed(text: &str, line: usize, rule: Rule) -> bool {
    Allowed::of(&lines(text).collect::<Vec<_>>()).has(line, rule)
}

/// The lines, from 1, and the rules that comments allow in them.
struct Allowed(BTreeSet<(usize, Rule)>);

impl Allowed {
    fn of(lines: &[(usize, &str)]) -> Self {
        let mut allowed = BTreeSet::new();
        for (index, (_, line)) in lines.iter().enumerate() {
            let mut parts = line.split("kopf: allow(");
            let before = parts.next().unwrap_or_default();
            let code = before.trim_end().trim_end_matches(['-', '/', '*']).trim();
            for names in parts {
                let names = names.split(')').next().unwrap_or_default();
                for rule in names.split(',').filter_map(|it| Rule::find(it.trim())) {
                    allowed.insert((index + 1, rule));
                    if code.is_empty() {
                        // A comment on a separate line refers to the next line.
                        allowed.insert((index + 2, rule));
                    }
                }
            }
        }
        Allowed(allowed)
    }

    fn has(&self, line: usize, rule: Rule) -> bool {
        self.0.contains(&(line, rule))
    }
}
