//! `re`: regular expressions that take linear time. Compiled patterns are kept, as many as are small together.

use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value, json};

use super::{
    Call, Failure, Function, Library, Outcome, Parameter, Type, bounds, immediate, optional, pace,
    required,
};
use crate::scripting::limits;

/// Longer patterns are data.
const PATTERN_MAX: usize = 8 * 1024;
/// Sizes of compiled patterns, in bytes: the smallest that is enough says how costly a search is at worst.
const SIZES: [usize; 5] = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
/// A search looks at each byte of a text once, and at worst at the whole pattern for each: about a second at most.
const WORK_MAX: usize = 1 << 34;
/// Bytes of compiled patterns that one VM keeps.
const KEPT_MAX: usize = 4 << 20;
/// Bytes that a pattern may take besides, to be faster.
const SCRATCH_MAX: usize = 256 * 1024;

const PATTERN: Parameter =
    required("pattern", Type::Text, "A regular expression; `(?i)` in front ignores the case.");
const TEXT: Parameter = required("text", Type::Text, "The text that is searched.");
const LIMIT: &[Parameter] =
    &[optional("limit", Type::Integer, "How many at most; all if left out.")];

pub(super) const LIBRARY: Library = Library {
    name: "re",
    doc: "Regular expressions of Perl's kind, without references and looking around: each search takes linear time.",
    functions: FUNCTIONS,
};

const FUNCTIONS: &[Function] = &[
    immediate(
        "test",
        "Whether a pattern is found in a text: `re.test(\"^v[0-9]+$\", version)`.",
        &[PATTERN, TEXT],
        Type::Boolean,
        |call| Ok(Value::from(ready(call)?.is_match(call.text("text"))).into()),
    ),
    immediate(
        "find",
        "The first part of a text that fits; nothing if there is none.",
        &[PATTERN, TEXT],
        Type::Any,
        |call| {
            let found = ready(call)?.find(call.text("text")).map(|it| it.as_str().to_owned());
            Ok(Value::from(found).into())
        },
    ),
    immediate("find_all", "All parts of a text that fit.", &[PATTERN, TEXT], Type::List, |call| {
        let pattern = ready(call)?;
        collected(call, pattern.find_iter(call.text("text")).map(|it| it.as_str().into()))
    })
    .with(LIMIT),
    immediate(
        "captures",
        "What the groups of a pattern have caught: `{text, groups, named}`, where `groups` is a list without the whole; \
         nothing if the pattern is not found.",
        &[PATTERN, TEXT],
        Type::Any,
        |call| {
            let pattern = ready(call)?;
            let caught = pattern.captures(call.text("text"));
            Ok(caught.map_or(Value::Null, |it| caught_groups(&pattern, &it)).into())
        },
    ),
    immediate(
        "captures_all",
        "The same for every place where the pattern is found.",
        &[PATTERN, TEXT],
        Type::List,
        |call| {
            let pattern = ready(call)?;
            let all = pattern.captures_iter(call.text("text"));
            collected(call, all.map(|it| caught_groups(&pattern, &it)))
        },
    )
    .with(LIMIT),
    immediate(
        "replace",
        "The text with another in place of what fits, everywhere; `$1` and `${name}` stand for groups, `$$` for `$`.",
        &[PATTERN, TEXT, required("new", Type::Text, "What comes in its place.")],
        Type::Text,
        replace,
    )
    .with(LIMIT),
    immediate(
        "split",
        "The parts of a text between what fits.",
        &[PATTERN, TEXT],
        Type::List,
        |call| {
            let pattern = ready(call)?;
            let text = call.text("text");
            match call.count("limit", 0)? {
                0 => collected(call, pattern.split(text).map(Value::from)),
                limit => collected(call, pattern.splitn(text, limit).map(Value::from)),
            }
        },
    )
    .with(&[optional("limit", Type::Integer, "The most parts; the last one is the rest. All if left out.")]),
    immediate(
        "escape",
        "A pattern that fits a text as it is: `re.escape(\"1.5\")` is `1\\.5`.",
        &[required("text", Type::Text, "The text.")],
        Type::Text,
        |call| Ok(Value::from(regex::escape(call.text("text"))).into()),
    ),
];

/// The compiled patterns of one VM, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<IndexMap<String, Compiled>>);

#[derive(Clone, Debug)]
struct Compiled {
    pattern: Regex,
    /// One of [`SIZES`].
    size: usize,
}

impl Patterns {
    fn get(&self, text: &str) -> Result<Compiled, Failure> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept.get(text) {
            return Ok(compiled.clone());
        }
        let compiled = compile(text)?;
        while kept.values().map(|it| it.size).sum::<usize>() + compiled.size > KEPT_MAX {
            kept.shift_remove_index(0);
        }
        kept.insert(text.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

fn compile(text: &str) -> Result<Compiled, Failure> {
    if text.len() > PATTERN_MAX {
        return Err(format!("`pattern`: longer than {PATTERN_MAX} bytes").into());
    }
    for size in SIZES {
        let mut builder = RegexBuilder::new(text);
        match builder.size_limit(size).dfa_size_limit(SCRATCH_MAX).nest_limit(100).build() {
            Ok(pattern) => return Ok(Compiled { pattern, size }),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(problem) => {
                let told = problem.to_string();
                let told = told.lines().last().unwrap_or_default();
                let told = told.strip_prefix("error: ").unwrap_or(told);
                return Err(format!("`pattern`: {}: {told}", Value::from(text)).into());
            }
        }
    }
    let most = SIZES.last().copied().unwrap_or_default();
    Err(format!("`pattern`: takes more than {most} bytes when it is compiled; repeat less in it")
        .into())
}

/// The pattern of a call, if its text is not too long for it.
fn ready(call: &Call) -> Result<Regex, Failure> {
    let Compiled { pattern, size } = call.surroundings.patterns.get(call.text("pattern"))?;
    let (bytes, most) = (call.text("text").len(), WORK_MAX / size);
    if bytes > most {
        return Err(format!(
            "`text`: {bytes} bytes are too many for this pattern, which is for texts of at most {most}: \
             search in parts, or write a simpler pattern, with [0-9A-Za-z_] instead of \\w"
        )
        .into());
    }
    Ok(pattern)
}

fn collected(call: &Call, found: impl Iterator<Item = Value>) -> Outcome {
    let limit = call.count("limit", usize::MAX)?;
    let mut items = Vec::new();
    for item in found.take(limit) {
        pace::step()?;
        bounds::room_for(items.len())?;
        items.push(item);
    }
    Ok(Value::Array(items).into())
}

fn caught_groups(pattern: &Regex, caught: &Captures<'_>) -> Value {
    let text = |it: Option<regex::Match<'_>>| it.map_or(Value::Null, |it| it.as_str().into());
    let groups: Value = caught.iter().skip(1).map(text).collect();
    let names = pattern.capture_names().flatten();
    let named: Map<_, _> = names
        .filter_map(|name| Some((name.to_owned(), Value::from(caught.name(name)?.as_str()))))
        .collect();
    json!({ "text": text(caught.get(0)), "groups": groups, "named": named })
}

fn replace(call: &Call) -> Outcome {
    let (pattern, text, new) = (ready(call)?, call.text("text"), call.text("new"));
    let (limit, size_max) =
        (call.count("limit", usize::MAX)?, call.surroundings.limits.string_size);
    let (mut replaced, mut copied) = (String::new(), 0);
    for caught in pattern.captures_iter(text).take(limit) {
        pace::step()?;
        let Some(whole) = caught.get(0) else { continue };
        replaced.push_str(text.get(copied..whole.start()).unwrap_or_default());
        caught.expand(new, &mut replaced);
        copied = whole.end();
        if replaced.len() > size_max {
            return Err(limits::too_long_text(size_max).into());
        }
    }
    replaced.push_str(text.get(copied..).unwrap_or_default());
    Ok(Value::from(replaced).into())
}
