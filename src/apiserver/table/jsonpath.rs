//! JSON paths of printer columns, in the syntax of `kubectl`, which is older than RFC 9535 and differs from it.
//!
//! Supported: `.field`, `\.` in names, `['field']`, `[0]`, `[-1]`, `[a:b:step]`, `[*]`, `.*`, `[1,2]`, `..`, and filters such as
//! `[?(@.type=="Ready")]`. A path that does not fit an object yields nothing, not a part of it.

use serde_json::{Number, Value};

/// Limit of results: several `..` in a row multiply them. No cell shows this many.
const RESULTS_MAX: usize = 10_000;

/// Limit of nested paths in unions and filters; those in use have one level.
const DEPTH_MAX: usize = 8;

/// A parsed path as a list of steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Every,
    /// The values themselves and everything inside of them.
    Deep,
    Item(i64),
    Slice(Option<i64>, Option<i64>, i64),
    Union(Vec<JsonPath>),
    Filter(Side, Option<(ComparisonOperator, Side)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One side of a comparison in a filter.
#[derive(Clone, Debug, PartialEq)]
enum Side {
    Path(JsonPath),
    Constant(Value),
}

impl JsonPath {
    /// Parses a path; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        parse(text, 0)
    }

    /// Returns the values at the path, in order. `None` if the path does not fit the value.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Option<Vec<&'a Value>> {
        let mut found = vec![value];
        for step in &self.0 {
            found = step.apply(&found)?;
            if found.len() > RESULTS_MAX {
                return None;
            }
        }
        Some(found)
    }
}

fn parse(text: &str, depth: usize) -> Option<JsonPath> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut steps = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(PathStep::Deep);
            // The second dot also starts a field.
            rest = after;
            if !after.starts_with('[') {
                rest = parse_field(after, &mut steps);
            }
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = parse_field(after, &mut steps);
        } else if let Some(after) = rest.strip_prefix("[?(") {
            let (filter, after) = after.split_once(")]")?;
            steps.push(parse_filter(filter, depth + 1)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            steps.extend(parse_brackets(inside, depth + 1)?);
            rest = after;
        } else {
            rest = rest.strip_prefix(['@', '$'])?;
        }
    }
    Some(JsonPath(steps))
}

/// Parses a name. It ends before a dot or a bracket, unless a backslash escapes it.
fn parse_field<'a>(text: &'a str, steps: &mut Vec<PathStep>) -> &'a str {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, it)| it)),
            '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' => {
                end = at;
                break;
            }
            letter => name.push(letter),
        }
    }
    // The name before a bracket may be empty: `.[0]`.
    if name == "*" {
        steps.push(PathStep::Every);
    } else {
        steps.push(PathStep::Field(name));
    }
    text.split_at_checked(end).map_or("", |(_, rest)| rest)
}

fn parse_brackets(inside: &str, depth: usize) -> Option<Vec<PathStep>> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(vec![PathStep::Every]);
    }
    if inside.contains(',') {
        let parts = inside.split(',').map(|it| parse(&format!("[{}]", it.trim()), depth));
        return Some(vec![PathStep::Union(parts.collect::<Option<_>>()?)]);
    }
    if let Some(name) = inside.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        // Dots count in quotes, too: the real server parses it in this way.
        return Some(parse(&format!(".{name}"), depth)?.0);
    }
    let bound = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    let bounds: Vec<Option<i64>> = inside.split(':').map(bound).collect::<Option<_>>()?;
    Some(vec![match bounds.as_slice() {
        [Some(index)] => PathStep::Item(*index),
        [None] => PathStep::Every,
        [start, end] => PathStep::Slice(*start, *end, 1),
        [start, end, step] => PathStep::Slice(*start, *end, step.unwrap_or(1)),
        _ => return None,
    }])
}

fn parse_filter(text: &str, depth: usize) -> Option<PathStep> {
    const SIGNS: [char; 4] = ['!', '<', '>', '='];
    let Some((left, rest)) = text.find(SIGNS).and_then(|at| text.split_at_checked(at)) else {
        return Some(PathStep::Filter(parse_side(text, depth)?, None));
    };
    let right = rest.trim_start_matches(SIGNS);
    let operator = match rest.strip_suffix(right)? {
        "==" => ComparisonOperator::Equal,
        "!=" => ComparisonOperator::NotEqual,
        "<" => ComparisonOperator::Less,
        "<=" => ComparisonOperator::LessOrEqual,
        ">" => ComparisonOperator::Greater,
        ">=" => ComparisonOperator::GreaterOrEqual,
        _ => return None,
    };
    let right = parse_side(right, depth)?;
    Some(PathStep::Filter(parse_side(left, depth)?, Some((operator, right))))
}

fn parse_side(text: &str, depth: usize) -> Option<Side> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(text) = text.strip_prefix(quote).and_then(|it| it.strip_suffix(quote)) {
            return Some(Side::Constant(text.into()));
        }
    }
    if text.starts_with(['@', '.', '$']) {
        return parse(text, depth).map(Side::Path);
    }
    let number = || text.parse::<Number>().ok().map(Value::Number);
    let flag = || text.parse::<bool>().ok().map(Value::Bool);
    number().or_else(flag).map(Side::Constant)
}

impl PathStep {
    fn apply<'a>(&self, values: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        for value in values {
            match self {
                // Values that are not maps have no fields, which is not an error.
                Self::Field(name) => found.extend(value.get(name)),
                Self::Every => every(value, &mut found),
                Self::Deep => deep(value, &mut found),
                Self::Union(paths) => {
                    for path in paths {
                        found.extend(path.find(value)?);
                    }
                }
                Self::Item(_) | Self::Slice(..) | Self::Filter(..) if value.is_null() => {}
                Self::Item(index) => {
                    let items = value.as_array()?;
                    found.push(items.get(position(*index, items.len())?)?);
                }
                Self::Slice(start, end, step) => {
                    let items = value.as_array()?;
                    let start = position(start.unwrap_or(0), items.len())?;
                    let length = i64::try_from(items.len()).ok()?;
                    let end = position(end.unwrap_or(length).min(length), items.len())?;
                    let step = usize::try_from(*step).ok().filter(|it| *it > 0)?;
                    // A start beyond the end is an error, like an index beyond it.
                    found.extend(items.get(start..end)?.iter().step_by(step));
                }
                Self::Filter(left, test) => {
                    for item in value.as_array()? {
                        if passes(item, left, test.as_ref())? {
                            found.push(item);
                        }
                    }
                }
            }
            if found.len() > RESULTS_MAX {
                return None;
            }
        }
        Some(found)
    }
}

/// Returns an index into a list; a negative one counts from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    usize::try_from(if index < 0 { index.checked_add(length)? } else { index }).ok()
}

/// Adds all parts of a value. Those of a map are sorted by name, because maps of Go have no order.
fn every<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => found.extend(items),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            found.extend(fields.into_iter().map(|(_, value)| value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds all nested values. It uses a work list instead of recursion, because clients determine the depth.
fn deep<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        if found.len() > RESULTS_MAX {
            return;
        }
        found.push(value);
        let mut parts = Vec::new();
        every(value, &mut parts);
        waiting.extend(parts.into_iter().rev());
    }
}

fn passes(item: &Value, left: &Side, test: Option<&(ComparisonOperator, Side)>) -> Option<bool> {
    let Some((operator, right)) = test else {
        return Some(match left {
            Side::Path(path) => !path.find(item)?.is_empty(),
            Side::Constant(_) => true,
        });
    };
    let one = |side: &'_ Side| -> Option<Option<Value>> {
        match side {
            Side::Constant(value) => Some(Some(value.clone())),
            Side::Path(path) => match path.find(item)?.as_slice() {
                [] => Some(None),
                [one] => Some(Some((*one).clone())),
                // Only single values are compared.
                _ => None,
            },
        }
    };
    match (one(left)?, one(right)?) {
        (Some(left), Some(right)) => compare(&left, *operator, &right),
        _ => Some(false),
    }
}

/// Compares values; `None` if their types differ.
fn compare(left: &Value, operator: ComparisonOperator, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64()?.partial_cmp(&right.as_f64()?)?
        }
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        _ => return None,
    };
    Some(match operator {
        ComparisonOperator::Equal => order.is_eq(),
        ComparisonOperator::NotEqual => order.is_ne(),
        ComparisonOperator::Less => order.is_lt(),
        ComparisonOperator::LessOrEqual => order.is_le(),
        ComparisonOperator::Greater => order.is_gt(),
        ComparisonOperator::GreaterOrEqual => order.is_ge(),
    })
}
