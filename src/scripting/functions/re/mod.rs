//! `re`: regular expressions in linear time. This is the table; `pattern.rs` compiles and keeps patterns, `search.rs` runs searches
//! that can be interrupted, `threads.rs` those for which nothing faster works.

mod pattern;
mod search;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;

use regex_automata::{PatternID, Span, util::interpolate};
use serde_json::{Map, Value, json};

pub(super) use self::pattern::Patterns;
use self::{pattern::Pattern, search::Search, threads::Groups};
use super::{Call, bounds};
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome},
        types::{Function, Library, Parameter, Type, immediate, optional, required},
    },
    values::limits,
};

const PATTERN: Parameter = required(
    "pattern",
    Type::Text,
    "A regular expression, at most 8192 bytes, a longer one is an error; the prefix `(?i)` ignores case.",
);
const TEXT: Parameter = required("text", Type::Text, "The string to search.");
const LIMIT: &[Parameter] =
    &[optional("limit", Type::Integer, "The maximum number of matches; default: all.")];

pub(super) const LIBRARY: Library = Library {
    name: "re",
    doc: "Regular expressions in Perl syntax, without backreferences and lookaround: each search takes linear time.",
    functions: FUNCTIONS,
};

const FUNCTIONS: &[Function] = &[
    immediate(
        "test",
        "Returns whether a string matches a pattern anywhere: `re.test(\"^v[0-9]+$\", version)`.",
        &[PATTERN, TEXT],
        Type::Boolean,
        |call| {
            let pattern = pattern(call)?;
            Ok(Value::from(Search::new(&pattern, call.text("text"))?.tests()?).into())
        },
    ),
    immediate(
        "matches",
        "Returns whether a string matches a pattern at its start, as `re.match` of Python: `re.matches(\"v[0-9]+\", \"v1.2\")`.",
        &[PATTERN, TEXT],
        Type::Boolean,
        |call| anchored(call, ""),
    ),
    immediate(
        "fullmatch",
        "Returns whether a whole string matches a pattern: `re.fullmatch(\"v[0-9]+\", \"v12\")`.",
        &[PATTERN, TEXT],
        Type::Boolean,
        |call| anchored(call, r"\z"),
    ),
    immediate(
        "find",
        "Returns the first match; nil if there is none.",
        &[PATTERN, TEXT],
        Type::Any,
        |call| {
            let (pattern, text) = (pattern(call)?, call.text("text"));
            let found = Search::new(&pattern, text)?.next()?;
            Ok(found.map_or(Value::Null, |it| part(text, it).into()).into())
        },
    ),
    immediate("find_all", "Returns all matches.", &[PATTERN, TEXT], Type::List, |call| {
        collected(call, |_, text, found| Ok(part(text, found).into()))
    })
    .with(LIMIT),
    immediate(
        "captures",
        "Returns the groups of the first match: `{text, groups, named}`, where `groups` is a list without the whole match; nil if there is no match.",
        &[PATTERN, TEXT],
        Type::Any,
        |call| {
            let (pattern, text) = (pattern(call)?, call.text("text"));
            let mut search = Search::new(&pattern, text)?;
            let Some(found) = search.next()? else { return Ok(Value::Null.into()) };
            let mut room = CaptureBudget::of(call);
            Ok(caught((&pattern, text), &search.groups(found)?, &mut room)?.into())
        },
    ),
    immediate(
        "captures_all",
        "Returns the same for each match.",
        &[PATTERN, TEXT],
        Type::List,
        |call| {
            let mut room = CaptureBudget::of(call);
            let pattern = pattern(call)?;
            collected(call, |search, text, found| {
                caught((&pattern, text), &search.groups(found)?, &mut room)
            })
        },
    )
    .with(LIMIT),
    immediate(
        "replace",
        "Replaces all matches; in the replacement, `$1` and `${name}` stand for groups, `$$` for `$`.",
        &[PATTERN, TEXT, required("new", Type::Text, "The replacement.")],
        Type::Text,
        replace,
    )
    .with(LIMIT),
    immediate("split", "Splits a string at the matches.", &[PATTERN, TEXT], Type::List, split)
        .with(&[optional(
            "limit",
            Type::Integer,
            "The maximum number of parts; the last one is the rest. Default: all.",
        )]),
    immediate(
        "escape",
        "Returns a pattern that matches a string literally: `re.escape(\"1.5\")` is `1\\.5`.",
        &[required("text", Type::Text, "The string.")],
        Type::Text,
        |call| Ok(Value::from(regex::escape(call.text("text"))).into()),
    ),
];

/// Returns the pattern of a call.
fn pattern(call: &Call) -> Result<Arc<Pattern>, Failure> {
    call.surroundings.patterns.get(call.text("pattern"))
}

/// Returns whether the pattern of a call matches at the start of its string, and up to `end`.
fn anchored(call: &Call, end: &str) -> Outcome {
    // Compiled alone first: its errors show the pattern as the script wrote it.
    pattern(call)?;
    let given = call.text("pattern");
    let pattern = call.surroundings.patterns.get(&format!(r"\A(?:{given}){end}"))?;
    Ok(Value::from(Search::new(&pattern, call.text("text"))?.tests()?).into())
}

fn part(text: &str, span: Span) -> &str {
    text.get(span.range()).unwrap_or_default()
}

/// Collects a value for every match of the pattern of a call.
fn collected(
    call: &Call,
    mut make: impl FnMut(&Search<'_>, &str, Span) -> Result<Value, Failure>,
) -> Outcome {
    let (pattern, text) = (pattern(call)?, call.text("text"));
    let limit = call.count("limit", usize::MAX)?;
    let (mut search, mut items) = (Search::new(&pattern, text)?, Vec::new());
    while items.len() < limit
        && let Some(found) = search.next()?
    {
        bounds::room_for(items.len())?;
        items.push(make(&search, text, found)?);
    }
    Ok(Value::Array(items).into())
}

/// The bytes that groups may still capture: nested ones capture the same characters several times.
struct CaptureBudget {
    items: usize,
    bytes: usize,
    bytes_max: usize,
}

impl CaptureBudget {
    fn of(call: &Call) -> Self {
        let bytes_max = call.surroundings.limits.string_size;
        CaptureBudget { items: bounds::ITEMS_MAX, bytes: bytes_max, bytes_max }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        let items = self.items.checked_sub(1);
        let full = || limits::too_many_items("the result", bounds::ITEMS_MAX);
        self.items = items.ok_or_else(full)?;
        let bytes = self.bytes.checked_sub(bytes);
        self.bytes = bytes.ok_or_else(|| limits::too_long_text(self.bytes_max))?;
        Ok(())
    }
}

fn caught(
    (pattern, text): (&Pattern, &str),
    groups: &Groups,
    room: &mut CaptureBudget,
) -> Result<Value, Failure> {
    let (mut all, mut named) = (Vec::new(), Map::new());
    let names = pattern.whole.group_info().pattern_names(PatternID::ZERO);
    for (span, name) in groups.iter().zip(names) {
        room.take(span.map_or(0, |it| it.len()))?;
        let value = span.map_or(Value::Null, |it| part(text, it).into());
        if let (Some(name), Some(span)) = (name, span) {
            room.take(span.len())?;
            named.insert(name.to_owned(), value.clone());
        }
        all.push(value);
    }
    // The first one is the whole match.
    let groups = all.split_off(all.len().min(1));
    Ok(json!({ "text": all.pop(), "groups": groups, "named": named }))
}

fn replace(call: &Call) -> Outcome {
    let (pattern, text, new) = (pattern(call)?, call.text("text"), call.text("new"));
    let (limit, size_max) =
        (call.count("limit", usize::MAX)?, call.surroundings.limits.string_size);
    let mut search = Search::new(&pattern, text)?;
    let (mut replaced, mut copied, mut count) = (String::new(), 0, 0);
    while count < limit
        && let Some(found) = search.next()?
    {
        count += 1;
        replaced.push_str(text.get(copied..found.start).unwrap_or_default());
        if new.contains('$') {
            let groups = search.groups(found)?;
            let append = |group, made: &mut String| {
                // If the result is too long already, nothing is added to it.
                let caught = groups.get(group).copied().flatten();
                let caught = caught.filter(|_| made.len() <= size_max);
                made.push_str(caught.map_or("", |it| part(text, it)));
            };
            let place = |name: &str| pattern.whole.group_info().to_index(PatternID::ZERO, name);
            interpolate::string(new, append, place, &mut replaced);
        } else {
            replaced.push_str(new);
        }
        copied = found.end;
        if replaced.len() > size_max {
            return Err(limits::too_long_text(size_max).into());
        }
    }
    replaced.push_str(text.get(copied..).unwrap_or_default());
    Ok(Value::from(replaced).into())
}

fn split(call: &Call) -> Outcome {
    let (pattern, text) = (pattern(call)?, call.text("text"));
    let limit = match call.count("limit", 0)? {
        0 => usize::MAX,
        limit => limit,
    };
    let (mut search, mut parts, mut copied) = (Search::new(&pattern, text)?, Vec::new(), 0);
    while parts.len() + 1 < limit
        && let Some(found) = search.next()?
    {
        bounds::room_for(parts.len())?;
        parts.push(Value::from(text.get(copied..found.start).unwrap_or_default()));
        copied = found.end;
    }
    parts.push(Value::from(text.get(copied..).unwrap_or_default()));
    Ok(Value::Array(parts).into())
}
