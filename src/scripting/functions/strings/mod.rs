//! `strings`: functions for strings. Characters are Unicode code points.

mod names;

use std::cell::{Cell, RefCell};

use serde_json::Value;

use super::{Call, bounds, pace};
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome},
        types::{Function, Library, Parameter, Type, immediate, optional, required},
    },
    values::limits,
};

const TEXT: Parameter = required("text", Type::Text, "The string; it is not changed.");
const PART: Parameter = required("part", Type::Text, "The string to find.");
const TRIMMED: Parameter = optional(
    "characters",
    Type::Name,
    "The characters to remove, at most 256 characters, more are an error; default: spaces and line breaks.",
);
const WIDTH: Parameter = required("width", Type::Integer, "The minimum number of characters.");
const FILL: Parameter = optional("fill", Type::Name, "The padding; default: spaces.");

pub(super) const LIBRARY: Library =
    Library { name: "strings", doc: "Functions for strings.", functions: FUNCTIONS };

const FUNCTIONS: &[Function] = &[
    immediate("trim", "Removes white space at both ends.", &[TEXT, TRIMMED], Type::Text, |call| {
        trimmed(call, true, true)
    }),
    immediate("trim_start", "Removes white space at the start.", &[TEXT, TRIMMED], Type::Text, |call| {
        trimmed(call, true, false)
    }),
    immediate("trim_end", "Removes white space at the end.", &[TEXT, TRIMMED], Type::Text, |call| {
        trimmed(call, false, true)
    }),
    immediate(
        "split",
        "Splits a string at a separator: `strings.split(\"a,b\", \",\")`. An empty separator returns the characters.",
        &[TEXT, required("separator", Type::Text, "The separator.")],
        Type::List,
        split,
    )
    .with(&[optional("limit", Type::Integer, "The maximum number of parts; the last one is the rest. Default: all.")]),
    immediate("words", "Splits a string at white space.", &[TEXT], Type::List, |call| {
        list(call.text("text").split_whitespace())
    }),
    immediate("lines", "Returns the lines, without line breaks.", &[TEXT], Type::List, |call| {
        list(call.text("text").lines())
    }),
    immediate(
        "join",
        "Joins items, which are strings, numbers, true or false, to one string.",
        &[
            required("list", Type::List, "The items."),
            optional("separator", Type::Text, "The separator; default: none."),
        ],
        Type::Text,
        join,
    ),
    immediate("starts_with", "Returns whether a string begins with another.", &[TEXT, PART], Type::Boolean, |call| {
        Ok(Value::from(call.text("text").starts_with(call.text("part"))).into())
    }),
    immediate("ends_with", "Returns whether a string ends with another.", &[TEXT, PART], Type::Boolean, |call| {
        Ok(Value::from(call.text("text").ends_with(call.text("part"))).into())
    }),
    immediate("contains", "Returns whether a string contains another.", &[TEXT, PART], Type::Boolean, |call| {
        Ok(Value::from(call.text("text").contains(call.text("part"))).into())
    }),
    immediate("count", "Returns how often a string contains another.", &[TEXT, required("part", Type::Name, "The string to count.")], Type::Integer, |call| {
        Ok(Value::from(occurrences(call.text("text"), call.text("part"), usize::MAX)?).into())
    }),
    immediate(
        "replace",
        "Replaces all occurrences of a part.",
        &[
            TEXT,
            required("part", Type::Name, "The string to replace."),
            required("new", Type::Text, "The replacement."),
        ],
        Type::Text,
        replace,
    )
    .with(&[optional("limit", Type::Integer, "The maximum number of replacements; default: all.")]),
    immediate("remove_prefix", "Removes a prefix, if the string has it.", &[TEXT, PART], Type::Text, |call| {
        let text = call.text("text");
        Ok(Value::from(text.strip_prefix(call.text("part")).unwrap_or(text)).into())
    }),
    immediate("remove_suffix", "Removes a suffix, if the string has it.", &[TEXT, PART], Type::Text, |call| {
        let text = call.text("text");
        Ok(Value::from(text.strip_suffix(call.text("part")).unwrap_or(text)).into())
    }),
    immediate("upper", "Returns the string in uppercase.", &[TEXT], Type::Text, |call| {
        Ok(Value::from(in_slices(call.text("text"), str::to_uppercase)?).into())
    }),
    immediate("lower", "Returns the string in lowercase.", &[TEXT], Type::Text, |call| {
        let text = call.text("text");
        // The lower case of this letter depends on its neighbors.
        let lowered = if text.contains('Σ') {
            text.to_lowercase()
        } else {
            in_slices(text, str::to_lowercase)?
        };
        Ok(Value::from(lowered).into())
    }),
    immediate("capitalize", "Returns the string with an uppercase first letter.", &[TEXT], Type::Text, |call| {
        let mut rest = call.text("text").chars();
        let first = rest.next().into_iter().flat_map(char::to_uppercase);
        Ok(Value::from(first.chain(rest).collect::<String>()).into())
    }),
    immediate("length", "Returns the number of characters; in Lua, `#text` counts bytes.", &[TEXT], Type::Integer, |call| {
        Ok(Value::from(call.text("text").chars().count()).into())
    }),
    immediate("reverse", "Returns the characters in reverse order.", &[TEXT], Type::Text, |call| {
        Ok(Value::from(call.text("text").chars().rev().collect::<String>()).into())
    }),
    immediate("repeated", "Repeats a string.", &[TEXT, required("count", Type::Integer, "The number of repetitions.")], Type::Text, |call| {
        let (text, count) = (call.text("text"), call.count("count", 0)?);
        room(call, text.len().saturating_mul(count))?;
        Ok(Value::from(text.repeat(count)).into())
    }),
    immediate("pad_start", "Pads the start of a string, so that it has at least this many characters.", &[TEXT, WIDTH, FILL], Type::Text, |call| {
        Ok(Value::from(fill(call)? + call.text("text")).into())
    }),
    immediate("pad_end", "Pads the end of a string, so that it has at least this many characters.", &[TEXT, WIDTH, FILL], Type::Text, |call| {
        Ok(Value::from(call.text("text").to_owned() + fill(call)?.as_str()).into())
    }),
    immediate(
        "truncate",
        "Truncates a string that is too long, with a mark at the end.",
        &[
            TEXT,
            required("length", Type::Integer, "The maximum number of characters, including the mark."),
            optional("mark", Type::Text, "The mark of a truncated string; default: `…`."),
        ],
        Type::Text,
        truncate,
    ),
    immediate(
        "indent",
        "Indents each line that is not empty.",
        &[TEXT, required("by", Type::Any, "The number of spaces, or a string to insert.")],
        Type::Text,
        indent,
    ),
    immediate(
        "dedent",
        "Removes the common indentation of all lines, and an empty first line: for multi-line strings in scripts.",
        &[TEXT],
        Type::Text,
        |call| Ok(Value::from(dedent(call.text("text"))).into()),
    ),
    names::SLUG,
    names::IS_DNS_LABEL,
    names::IS_DNS_NAME,
    names::KEBAB,
    names::SNAKE,
    names::CAMEL,
];

/// Checks that a string of this many bytes may be created.
fn room(call: &Call, bytes: usize) -> Result<(), Failure> {
    let limit = call.surroundings.limits.string_size;
    if bytes > limit { Err(limits::too_long_text(limit).into()) } else { Ok(()) }
}

fn trimmed(call: &Call, start: bool, end: bool) -> Outcome {
    /// Maximum number of characters to strip.
    const CHARACTERS_MAX: usize = 256;
    let mut taken: Vec<char> = call.text("characters").chars().take(CHARACTERS_MAX + 1).collect();
    if taken.len() > CHARACTERS_MAX {
        return Err(format!("`characters`: more than {CHARACTERS_MAX}").into());
    }
    taken.sort_unstable();
    let (seen, late) = (Cell::new(0_usize), RefCell::new(None));
    let goes = |it: char| {
        seen.set(seen.get() + 1);
        if let Err(failure) = pace::short_step(seen.get()) {
            late.replace(Some(failure));
            return false;
        }
        if taken.is_empty() { it.is_whitespace() } else { taken.binary_search(&it).is_ok() }
    };
    let mut text = call.text("text");
    if start {
        text = text.trim_start_matches(goes);
    }
    if end {
        text = text.trim_end_matches(goes);
    }
    late.take().map_or_else(|| Ok(Value::from(text).into()), Err)
}

/// Returns a list, if it is not too long.
fn list<'a>(parts: impl Iterator<Item = &'a str>) -> Outcome {
    let mut items = Vec::new();
    for part in parts {
        bounds::room_for(items.len())?;
        pace::short_step(items.len())?;
        items.push(Value::from(part));
    }
    Ok(Value::Array(items).into())
}

fn split(call: &Call) -> Outcome {
    let (text, separator) = (call.text("text"), call.text("separator"));
    let limit = call.count("limit", usize::MAX)?;
    if limit == 0 {
        return Err("`limit`: expected a number of at least 1, got 0".into());
    }
    if separator.is_empty() {
        let parts = text
            .char_indices()
            .map(|(at, it)| text.get(at..at + it.len_utf8()).unwrap_or_default());
        return list(parts.take(limit));
    }
    list(text.splitn(limit, separator))
}

fn join(call: &Call) -> Outcome {
    let mut joined = String::new();
    for (place, item) in (1..).zip(call.list("list")) {
        pace::short_step(place)?;
        if place > 1 {
            joined.push_str(call.text("separator"));
        }
        match item {
            Value::String(text) => joined.push_str(text),
            Value::Number(_) | Value::Bool(_) => joined.push_str(&item.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let message = format!(
                    "`list`: item {place}: expected a string, got {}",
                    crate::scripting::values::text::shown(item)
                );
                return Err(message.into());
            }
        }
        room(call, joined.len())?;
    }
    Ok(Value::from(joined).into())
}

fn replace(call: &Call) -> Outcome {
    let (text, part, new) = (call.text("text"), call.text("part"), call.text("new"));
    let limit = call.count("limit", usize::MAX)?;
    let times = occurrences(text, part, limit)?;
    room(call, text.len().saturating_add(new.len().saturating_mul(times)))?;
    let (mut replaced, mut done) = (String::new(), 0);
    for (count, (place, found)) in text.match_indices(part).take(limit).enumerate() {
        pace::short_step(count)?;
        replaced.push_str(text.get(done..place).unwrap_or_default());
        replaced.push_str(new);
        done = place + found.len();
    }
    replaced.push_str(text.get(done..).unwrap_or_default());
    Ok(Value::from(replaced).into())
}

/// Returns how often a part occurs, up to `limit`.
fn occurrences(text: &str, part: &str, limit: usize) -> Result<usize, Failure> {
    let mut count = 0;
    for _ in text.matches(part).take(limit) {
        pace::short_step(count)?;
        count += 1;
    }
    Ok(count)
}

/// Changes a string slice by slice, with checks of the time: megabytes take long.
fn in_slices(text: &str, change: fn(&str) -> String) -> Result<String, Failure> {
    const BYTES: usize = 256 * 1024;
    let (mut changed, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        pace::step()?;
        let end = rest.ceil_char_boundary(BYTES.min(rest.len()));
        let (slice, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        changed.push_str(&change(slice));
        rest = after;
    }
    Ok(changed)
}

/// Returns the padding up to the width.
fn fill(call: &Call) -> Result<String, Failure> {
    let width = call.count("width", 0)?;
    let missing = width.saturating_sub(call.text("text").chars().count());
    let fill = call.some_text("fill").unwrap_or(" ");
    room(call, missing.saturating_mul(4))?;
    Ok(fill.chars().cycle().take(missing).collect())
}

fn truncate(call: &Call) -> Outcome {
    let (text, length) = (call.text("text"), call.count("length", 0)?);
    if text.chars().nth(length).is_none() {
        return Ok(Value::from(text).into());
    }
    let mark = call.some_text("mark").unwrap_or("…");
    let kept = length.saturating_sub(mark.chars().count());
    let cut: String = text.chars().take(kept).chain(mark.chars()).take(length).collect();
    Ok(Value::from(cut).into())
}

fn indent(call: &Call) -> Outcome {
    let front = match call.value("by") {
        Value::String(front) => front.clone(),
        Value::Number(_) if call.integer("by").is_some() => {
            let count = call.count("by", 0)?;
            room(call, count)?;
            " ".repeat(count)
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => {
            let got = crate::scripting::values::text::shown(other);
            return Err(format!("`by`: expected a number of spaces or a string, got {got}").into());
        }
    };
    let text = call.text("text");
    let lines = text.lines().count();
    room(call, text.len().saturating_add(front.len().saturating_mul(lines)))?;
    let indented = text.split_inclusive('\n').flat_map(|line| {
        let front = if line.trim().is_empty() { "" } else { front.as_str() };
        [front, line]
    });
    Ok(Value::from(indented.collect::<String>()).into())
}

fn dedent(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let spaces = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = || text.lines().filter(|it| !it.trim().is_empty());
    let common = filled().map(|it| spaces(&it)).min().unwrap_or_default();
    let cut = |line: &str| match line.get(common..) {
        Some(rest) if !line.trim().is_empty() => rest.to_owned(),
        Some(_) | None if line.ends_with('\n') => "\n".to_owned(),
        Some(_) | None => String::new(),
    };
    text.split_inclusive('\n').map(cut).collect()
}
