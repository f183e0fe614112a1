//! Validation of values by a schema, with the messages of the real server.
//!
//! The order of checks is that of its library, because messages depend on it: the number of checks that ran in each branch of an
//! `anyOf` decides which branch is reported. Known difference: the library iterates over the fields of an object in random order,
//! this code in the order of their names.

use serde_json::{Number, Value};

use super::checks::{Checks, ObjectChecks, Rest, StringChecks};
use crate::refusal::{ProblemKind, ValidationProblem, go};
use crate::sorted;

/// The result of validating one value.
#[derive(Default)]
struct ValidationResult {
    problems: Vec<ValidationProblem>,
    /// The number of checks that ran to the end.
    ran: usize,
}

impl ValidationResult {
    fn add(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.ran += other.ran;
    }

    fn fits(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Validates a complete value. The recursion follows the schema, whose depth is bounded.
pub(super) fn check(checks: &Checks, value: &Value) -> Vec<ValidationProblem> {
    run(checks, value, "").problems
}

fn run(checks: &Checks, value: &Value, path: &str) -> ValidationResult {
    let mut all = ValidationResult::default();
    if value.is_null() {
        all.problems.extend(wrong_type(checks, value, path));
        all.problems.extend(options(checks, value, path));
        return all;
    }
    if !checks.types.is_empty() || checks.format.is_some() {
        let wrong = wrong_type(checks, value, path);
        all.ran += 1 + usize::from(wrong.is_none());
        all.problems.extend(wrong);
    }
    all.add(junctors(checks, value, path));
    all.ran += 1;
    match value {
        Value::String(text) => {
            all.problems.extend(texts(&checks.text, text, path));
            all.ran += 1;
            // Formats of numbers do not apply to strings.
            if let Some(format) = checks.format.as_deref() {
                all.problems.extend(wrong_format(format, text, path));
                all.ran += 1;
            }
        }
        Value::Number(number) => {
            all.problems.extend(numbers(checks, number, path));
            all.ran += 2;
        }
        Value::Array(items) => {
            all.add(list(checks, items, path));
            all.ran += 1;
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    all.problems.extend(options(checks, value, path));
    all.ran += 1;
    if let Value::Object(fields) = value {
        all.add(object(&checks.object, fields, path));
        all.ran += 1;
    }
    all.ran += 1;
    all
}

/// Returns the type of a value and its format, as the library guesses them.
fn guess(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(it) if it.is_i64() => ("integer", "int64"),
        // Including integers that are too large.
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn wrong_type(checks: &Checks, value: &Value, path: &str) -> Option<ValidationProblem> {
    let expected = checks.types.join(",");
    let wrong = |expected: &str, found: &str| {
        let text = format!("{path} in body must be of type {expected}: {}", go::quote(found));
        Some(ValidationProblem::new(field(path), ProblemKind::TypeInvalid(found.into(), text)))
    };
    if value.is_null() {
        let fits = checks.types.is_empty() || checks.nullable;
        return if fits { None } else { wrong(&expected, "null") };
    }
    let (kind, format) = guess(value);
    let whole = kind == "number" && is_whole(value) && checks.allows("integer");
    let fits = checks.allows(kind) || whole || (kind == "integer" && checks.allows("number"));
    let loose = matches!(value, Value::String(_) | Value::Array(_));
    match &checks.format {
        Some(wanted) if !loose && !fits && format != wanted => wrong(wanted, format),
        // A string or a list passes every format except those of numbers.
        Some(_) if loose && !checks.allows("number") && !checks.allows("integer") => None,
        _ if fits => None,
        _ => wrong(&expected, kind),
    }
}

/// Returns whether a float is an integer that floats represent exactly.
fn is_whole(value: &Value) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    value.as_f64().is_some_and(|it| it.fract() == 0.0 && it.abs() <= MAX)
}

fn junctors(checks: &Checks, value: &Value, path: &str) -> ValidationResult {
    let mut all = ValidationResult::default();
    let general = |text: String| {
        ValidationProblem::invalid("<nil>", "", format!("{} {text}", go::quote(path)))
    };
    if !checks.any_of.is_empty() {
        let (fitting, best) = branches(&checks.any_of, value, path, true);
        if fitting == 0 {
            all.problems.push(general("must validate at least one schema (anyOf)".into()));
        }
        all.add(best);
    }
    if !checks.one_of.is_empty() {
        let (fitting, best) = branches(&checks.one_of, value, path, false);
        if fitting != 1 {
            let found = match fitting {
                0 => "Found none valid".into(),
                several => format!("Found {several} valid alternatives"),
            };
            let text = format!("must validate one and only one schema (oneOf). {found}");
            all.problems.push(general(text));
        }
        if fitting <= 1 {
            all.add(best);
        }
    }
    if !checks.all_of.is_empty() {
        let mut fitting = 0;
        for branch in &checks.all_of {
            let outcome = run(branch, value, path);
            fitting += usize::from(outcome.fits());
            all.add(outcome);
        }
        if fitting < checks.all_of.len() {
            let none = if fitting == 0 { ". None validated" } else { "" };
            all.problems.push(general(format!("must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &checks.not
        && run(not, value, path).fits()
    {
        all.problems.push(general("must not validate the schema (not)".into()));
    }
    all.ran += 1;
    all
}

/// Returns the number of matching branches, and the outcome of the first one. If none matches, it is the outcome of the one with
/// the most checks.
fn branches(
    branches: &[Checks],
    value: &Value,
    path: &str,
    one_is_enough: bool,
) -> (usize, ValidationResult) {
    let mut fitting = 0;
    let mut best: Option<ValidationResult> = None;
    for branch in branches {
        let outcome = run(branch, value, path);
        if outcome.fits() {
            fitting += 1;
            if fitting == 1 {
                best = Some(outcome);
            }
            if one_is_enough {
                break;
            }
        } else if fitting == 0 && best.as_ref().is_none_or(|it| outcome.ran > it.ran) {
            best = Some(outcome);
        }
    }
    (fitting, best.unwrap_or_default())
}

/// Returns the first problem of a string; further ones are not reported.
fn texts(checks: &StringChecks, text: &str, path: &str) -> Option<ValidationProblem> {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let wrong = |words: String| Some(invalid(path, text, format!("{path} in body should {words}")));
    if let Some(longest) = checks.longest.filter(|it| length > *it) {
        let most = usize::try_from(longest).unwrap_or_default();
        return Some(ValidationProblem::new(field(path), ProblemKind::TooLong(text.into(), most)));
    }
    if let Some(shortest) = checks.shortest.filter(|it| length < *it) {
        return wrong(format!("be at least {shortest} chars long"));
    }
    let (written, regex) = checks.pattern.as_ref()?;
    if regex.is_match(text) { None } else { wrong(format!("match '{written}'")) }
}

fn wrong_format(format: &str, text: &str, path: &str) -> Option<ValidationProblem> {
    if super::formats::fits(format, text) {
        return None;
    }
    let words = format!("{path} in body must be of type {format}: {}", go::quote(text));
    Some(ValidationProblem::new(field(path), ProblemKind::TypeInvalid(text.into(), words)))
}

/// Returns the problem of a number, or of a limit of numbers, that does not have the type or the format.
fn out_of_range(
    what: &str,
    checks: &Checks,
    number: &Value,
    path: &str,
) -> Option<ValidationProblem> {
    let [kind] = checks.types.as_slice() else { return None };
    let format = checks.format.as_deref().unwrap_or_default();
    let whole = number.is_i64() || is_whole(number);
    let fits = match (kind.as_str(), format) {
        // Limits are floats.
        ("integer", "int32") => whole && is_within(number, i32::MIN.into(), i32::MAX.into()),
        ("integer", "uint32") => whole && is_within(number, 0.0, u32::MAX.into()),
        ("integer", "uint64") => whole && number.as_f64().is_some_and(|it| it >= 0.0),
        ("integer", _) => whole,
        ("number", "float") => number.as_f64().is_some_and(|it| it.abs() <= f64::from(f32::MAX)),
        _ => true,
    };
    let named = match format {
        "" => "(default format)".to_owned(),
        format => format!("with format {format}"),
    };
    let text = format!("{what} must be of type {kind} {named} in {path}");
    (!fits).then(|| ValidationProblem::invalid("<nil>", "", text))
}

fn is_within(number: &Value, least: f64, most: f64) -> bool {
    number.as_f64().is_some_and(|it| (least..=most).contains(&it))
}

fn numbers(checks: &Checks, number: &Number, path: &str) -> Vec<ValidationProblem> {
    let mut found = Vec::new();
    found.extend(out_of_range("Checked value", checks, &number.clone().into(), path));
    let limits = [
        ("MultipleOf value", checks.number.multiple_of),
        ("Minimum boundary value", checks.number.minimum),
        ("Maximum boundary value", checks.number.maximum),
    ];
    for (what, limit) in limits {
        let limit = limit.map(Value::from);
        found.extend(limit.and_then(|it| out_of_range(what, checks, &it, path)));
    }
    let checks = &checks.number;
    let mut wrong = |words: &str, limit: f64| {
        let text = format!("{path} in body should be {words} {}", go::float(limit));
        found.push(invalid(path, number.clone(), text));
    };
    let value = number.as_f64().unwrap_or_default();
    if let Some(factor) = checks.multiple_of.filter(|it| *it > 0.0 && !is_multiple(value, *it)) {
        wrong("a multiple of", factor);
    }
    if let Some(most) = checks.maximum {
        match checks.maximum_exclusive {
            true if value >= most => wrong("less than", most),
            false if value > most => wrong("less than or equal to", most),
            _ => {}
        }
    }
    if let Some(least) = checks.minimum {
        match checks.minimum_exclusive {
            true if value <= least => wrong("greater than", least),
            false if value < least => wrong("greater than or equal to", least),
            _ => {}
        }
    }
    found
}

/// Returns whether a value is a multiple of a factor, with the tolerance of the library.
fn is_multiple(value: f64, factor: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    let quotient = value / factor;
    let off = (quotient - quotient.round()).abs();
    off == 0.0 || off < EPSILON * quotient.abs()
}

fn list(checks: &Checks, items: &[Value], path: &str) -> ValidationResult {
    let mut all = ValidationResult::default();
    if let Some(of_items) = &checks.items {
        for (at, item) in items.iter().enumerate() {
            all.add(run(of_items, item, &format!("{path}[{at}]")));
        }
    }
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let mut wrong = |words: String| {
        let text = format!("{path} in body should have {words} items");
        all.problems.push(invalid(path, count, text));
    };
    if let Some(fewest) = checks.items_min.filter(|it| count < *it) {
        wrong(format!("at least {fewest}"));
    }
    if let Some(most) = checks.items_max.filter(|it| count > *it) {
        all.problems.push(too_many(path, items.len(), most));
    }
    all.ran += 1;
    all
}

fn options(checks: &Checks, value: &Value, path: &str) -> Option<ValidationProblem> {
    let options = checks.options.as_ref()?;
    if options.iter().any(|it| same(it, value)) {
        return None;
    }
    let texts = options.iter().map(|it| it.as_str().map_or_else(|| go::json(it), String::from));
    let kind = ProblemKind::NotSupported(value.clone(), texts.collect());
    Some(ValidationProblem::new(field(path), kind))
}

/// Returns whether two values are equal, regardless of the notation of numbers and the order of fields.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}

fn object(
    checks: &ObjectChecks,
    fields: &serde_json::Map<String, Value>,
    path: &str,
) -> ValidationResult {
    let mut all = ValidationResult::default();
    let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(fewest) = checks.fewest.filter(|it| count < *it) {
        let text = format!("{path} in body should have at least {fewest} properties");
        all.problems.push(invalid(path, count, text));
    }
    if let Some(most) = checks.most.filter(|it| count > *it) {
        all.problems.push(too_many(path, fields.len(), most));
    }
    let mut others: Vec<(&String, &Value)> =
        fields.iter().filter(|(name, _)| !checks.fields.contains_key(*name)).collect();
    sorted::sort_by_key(&mut others, |(name, _)| *name);
    for (name, value) in others {
        match &checks.rest {
            Rest::Free => {}
            Rest::Forbidden => {
                let text = format!("{} in body is a forbidden property", join(path, name));
                all.problems.push(invalid(path, name.as_str(), text));
            }
            Rest::Each(checks) => all.add(run(checks, value, &join(path, name))),
        }
    }
    for (name, checks) in &checks.fields {
        if let Some(value) = fields.get(name) {
            all.add(run(checks, value, &join(path, name)));
        }
    }
    for name in checks.required.iter().filter(|it| !fields.contains_key(*it)) {
        all.problems.push(ValidationProblem::required(join(path, name), ""));
    }
    all
}

fn too_many(path: &str, count: usize, most: i64) -> ValidationProblem {
    let most = usize::try_from(most).unwrap_or_default();
    ValidationProblem::new(field(path), ProblemKind::TooMany(count, most))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn invalid(path: &str, value: impl Into<Value>, text: String) -> ValidationProblem {
    ValidationProblem::invalid(field(path), value, text)
}

/// Returns the path of a problem; those of the whole object have no field.
fn field(path: &str) -> String {
    if path.is_empty() { "<nil>".into() } else { path.to_owned() }
}
