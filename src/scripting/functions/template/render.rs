//! A template with its values filled in.

use std::borrow::Cow;

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::parse::{Condition, Expression, Operand, Part};
use crate::logic::text::json::truthy;
use crate::scripting::{
    functions::{bounds::equal, pace, types::Failure, yaml},
    values::{limits, text},
};

/// The most parts that are filled in, those of loops each time.
const STEPS_MAX: usize = 1_000_000;

struct Render<'a, 'v> {
    /// What is named, the innermost last.
    scopes: Vec<(&'a str, Cow<'v, Value>)>,
    values: &'v Value,
    done: String,
    size_max: usize,
    steps: usize,
}

/// Fills a template in; the result is no longer than `size_max` bytes.
pub(super) fn render(
    parts: &[Part<'_>],
    values: &Value,
    size_max: usize,
) -> Result<String, String> {
    let mut render = Render { scopes: Vec::new(), values, done: String::new(), size_max, steps: 0 };
    render.parts(parts)?;
    Ok(render.done)
}

impl<'a, 'v> Render<'a, 'v> {
    fn parts(&mut self, parts: &[Part<'a>]) -> Result<(), String> {
        parts.iter().try_for_each(|it| self.part(it))
    }

    /// Each may work on a text as long as one may be, so each looks at the time.
    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!("takes more than {STEPS_MAX} steps"));
        }
        pace::step().map_err(Failure::into_message)
    }

    fn part(&mut self, part: &Part<'a>) -> Result<(), String> {
        self.step()?;
        match part {
            Part::Text(it) => self.add(it),
            Part::Value(it) => {
                let value = self.evaluate(it)?;
                self.add(&plain(&value))
            }
            Part::If(branches) => {
                for (condition, body) in branches {
                    self.step()?;
                    if condition.as_ref().map_or(Ok(true), |it| self.holds(it))? {
                        return self.parts(body);
                    }
                }
                Ok(())
            }
            Part::For { key, item, list, body } => self.repeat(*key, item, list, body),
        }
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        self.room_for(self.done.len().saturating_add(text.len()))?;
        self.done.push_str(text);
        Ok(())
    }

    /// Whether a text may have so many bytes.
    fn room_for(&self, bytes: usize) -> Result<(), String> {
        if bytes > self.size_max { Err(limits::too_long_text(self.size_max)) } else { Ok(()) }
    }

    fn repeat(
        &mut self,
        key: Option<&'a str>,
        item: &'a str,
        list: &Expression<'a>,
        body: &[Part<'a>],
    ) -> Result<(), String> {
        let looped = self.evaluate(list)?;
        let entries = match &looped {
            Cow::Borrowed(it) => entries(it),
            Cow::Owned(it) => entries(it).map(|all| all.into_iter().map(owned).collect()),
        };
        let entries = entries.ok_or_else(|| {
            let got = text::shown(&looped);
            format!("line {}: expected a list or a map, got {got}", list.line)
        })?;
        let (outside, count) = (self.scopes.len(), entries.len());
        for (place, (name, value)) in (1..).zip(entries) {
            self.step()?;
            let of_loop = json!({ "index": place, "first": place == 1, "last": place == count });
            self.scopes.push(("loop", Cow::Owned(of_loop)));
            self.scopes.extend(key.map(|it| (it, Cow::Owned(name))));
            self.scopes.push((item, value));
            self.parts(body)?;
            self.scopes.truncate(outside);
        }
        Ok(())
    }

    fn holds(&mut self, condition: &Condition<'a>) -> Result<bool, String> {
        let left = self.evaluate_or_nothing(&condition.left)?;
        let holds = match &condition.right {
            Some((is_equal, right)) => {
                let right = self.evaluate_or_nothing(right)?;
                equal(&left, &right) == *is_equal
            }
            None => truthy(&left),
        };
        Ok(holds != condition.negated)
    }

    /// A value that must be there.
    fn evaluate(&mut self, expression: &Expression<'a>) -> Result<Cow<'v, Value>, String> {
        let has_default = expression.filters.iter().any(|(name, _)| *name == "default");
        if let Operand::Path(path) = expression.value
            && !has_default
            && self.find(path).is_none()
        {
            return Err(format!(
                "line {}: there is no `{path}`; `{path} | default(\"\")` is for optional values",
                expression.line
            ));
        }
        self.evaluate_or_nothing(expression)
    }

    fn evaluate_or_nothing(
        &mut self,
        expression: &Expression<'a>,
    ) -> Result<Cow<'v, Value>, String> {
        let mut value = match &expression.value {
            Operand::Literal(it) => Cow::Owned(it.clone()),
            Operand::Path(path) => self.find(path).unwrap_or_default(),
        };
        for (name, argument) in &expression.filters {
            self.step()?;
            value = filtered(value, name, argument.as_ref(), self.size_max)
                .map_err(|it| format!("line {}: {name}: {it}", expression.line))?;
            self.room_for(value.as_str().map_or(0, str::len))?;
        }
        Ok(value)
    }

    /// What a path leads to; null is nothing. What the values have is not copied.
    fn find(&self, path: &str) -> Option<Cow<'v, Value>> {
        let mut steps = path.split(['.', '[']).map(|it| it.trim_end_matches(']'));
        let first = steps.next()?;
        let found = match self.scopes.iter().rev().find(|(name, _)| *name == first) {
            Some((_, Cow::Borrowed(scope))) => Cow::Borrowed(below(scope, steps)?),
            Some((_, Cow::Owned(scope))) => Cow::Owned(below(scope, steps)?.clone()),
            None => Cow::Borrowed(below(self.values.get(first)?, steps)?),
        };
        Some(found).filter(|it| !it.is_null())
    }
}

fn below<'v, 'p>(value: &'v Value, mut steps: impl Iterator<Item = &'p str>) -> Option<&'v Value> {
    steps.try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(step),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// What a loop goes through: places or names, and the values there; nothing of what is no list and no map.
fn entries(value: &Value) -> Option<Vec<(Value, Cow<'_, Value>)>> {
    match value {
        Value::Array(items) => {
            let places = items.iter().enumerate();
            Some(places.map(|(place, it)| (json!(place), Cow::Borrowed(it))).collect())
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let named = |(key, it): (&String, _)| (Value::from(key.as_str()), Cow::Borrowed(it));
            Some(fields.into_iter().map(named).collect())
        }
        Value::Null => Some(Vec::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn owned<'v>((name, value): (Value, Cow<'_, Value>)) -> (Value, Cow<'v, Value>) {
    (name, Cow::Owned(value.into_owned()))
}

/// Texts as they are, data as JSON.
fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(it) => Cow::Borrowed(it),
        Value::Bool(_) | Value::Number(_) => Cow::Owned(value.to_string()),
        Value::Array(_) | Value::Object(_) => Cow::Owned(text::shown(value)),
    }
}

/// What a filter makes of a value. Texts are known to be no longer than `size_max` before they are made, or at most some times
/// as long.
fn filtered<'v>(
    value: Cow<'v, Value>,
    name: &str,
    argument: Option<&Value>,
    size_max: usize,
) -> Result<Cow<'v, Value>, String> {
    let made: Value = match name {
        "default" if value.is_null() => {
            argument.cloned().ok_or("expected a value in parentheses")?
        }
        "default" => return Ok(value),
        "upper" => plain(&value).to_uppercase().into(),
        "lower" => plain(&value).to_lowercase().into(),
        "trim" => plain(&value).trim().into(),
        "quote" => Value::from(plain(&value)).to_string().into(),
        "json" => value.to_string().into(),
        "yaml" => yaml::write(&value)?.trim_end().into(),
        "base64" => STANDARD.encode(&*plain(&value)).into(),
        "length" => match &*value {
            Value::Array(items) => items.len().into(),
            Value::Object(fields) => fields.len().into(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                plain(&value).chars().count().into()
            }
        },
        "join" => {
            let items = value.as_array().ok_or("expected a list")?;
            let separator = argument.and_then(Value::as_str).unwrap_or_default();
            joined(items.iter().map(plain), separator, size_max)?.into()
        }
        // The first line stays: the place in the template has its own indent.
        _ => {
            let count =
                argument.and_then(Value::as_u64).ok_or("expected a number in parentheses")?;
            let count = usize::try_from(count).ok().filter(|it| *it <= 200).ok_or("at most 200")?;
            let text = plain(&value);
            let lines = text.split('\n').map(Cow::Borrowed);
            joined(lines, &format!("\n{}", " ".repeat(count)), size_max)?.into()
        }
    };
    Ok(Cow::Owned(made))
}

/// One text of all parts, unless it is too long.
fn joined<'p>(
    parts: impl Iterator<Item = Cow<'p, str>>,
    separator: &str,
    size_max: usize,
) -> Result<String, String> {
    let mut joined = String::new();
    for (place, part) in parts.enumerate() {
        pace::short_step(place).map_err(Failure::into_message)?;
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&part);
        if joined.len() > size_max {
            return Err(limits::too_long_text(size_max));
        }
    }
    Ok(joined)
}
