//! A template with its values filled in.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::parse::{Condition, Expression, Operand, Part};
use crate::logic::json::truthy;
use crate::scripting::{
    library::{pace, yaml},
    limits, text,
};

/// The most parts that are filled in, those of loops each time.
const STEPS_MAX: usize = 1_000_000;

struct Render<'a> {
    /// What is named, the innermost last.
    scopes: Vec<(&'a str, Value)>,
    values: &'a Value,
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

impl<'a> Render<'a> {
    fn parts(&mut self, parts: &[Part<'a>]) -> Result<(), String> {
        parts.iter().try_for_each(|it| self.part(it))
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!("takes more than {STEPS_MAX} steps"));
        }
        if self.steps.is_multiple_of(64) && pace::step().is_err() {
            return Err("out of time".into());
        }
        Ok(())
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
        if self.done.len() + text.len() > self.size_max {
            return Err(limits::too_long_text(self.size_max));
        }
        self.done.push_str(text);
        Ok(())
    }

    fn repeat(
        &mut self,
        key: Option<&'a str>,
        item: &'a str,
        list: &Expression<'a>,
        body: &[Part<'a>],
    ) -> Result<(), String> {
        let entries: Vec<(Value, Value)> = match self.evaluate(list)? {
            Value::Array(items) => {
                items.into_iter().enumerate().map(|(place, it)| (json!(place), it)).collect()
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_by(|(a, _), (b, _)| a.cmp(b));
                fields.into_iter().map(|(key, it)| (key.into(), it)).collect()
            }
            Value::Null => Vec::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                let got = text::shown(&other);
                return Err(format!("line {}: expected a list or a map, got {got}", list.line));
            }
        };
        let (outside, count) = (self.scopes.len(), entries.len());
        for (place, (name, value)) in (1..).zip(entries) {
            self.step()?;
            let of_loop = json!({ "index": place, "first": place == 1, "last": place == count });
            self.scopes.push(("loop", of_loop));
            self.scopes.extend(key.map(|it| (it, name)));
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
                crate::scripting::library::bounds::equal(&left, &right) == *is_equal
            }
            None => truthy(&left),
        };
        Ok(holds != condition.negated)
    }

    /// A value that must be there.
    fn evaluate(&mut self, expression: &Expression<'a>) -> Result<Value, String> {
        let has_default = expression.filters.iter().any(|(name, _)| *name == "default");
        if let Operand::Path(path) = expression.value
            && !has_default
            && self.find(path).is_none()
        {
            return Err(format!(
                "line {}: there is no `{path}`; `{path} | default(\"\")` is for what may be missing",
                expression.line
            ));
        }
        self.evaluate_or_nothing(expression)
    }

    fn evaluate_or_nothing(&mut self, expression: &Expression<'a>) -> Result<Value, String> {
        let mut value = match &expression.value {
            Operand::Literal(it) => it.clone(),
            Operand::Path(path) => self.find(path).cloned().unwrap_or_default(),
        };
        for (name, argument) in &expression.filters {
            self.step()?;
            value = filtered(value, name, argument.as_ref())
                .map_err(|it| format!("line {}: {name}: {it}", expression.line))?;
            if value.as_str().is_some_and(|it| it.len() > self.size_max) {
                return Err(limits::too_long_text(self.size_max));
            }
        }
        Ok(value)
    }

    /// What a path leads to; null is nothing.
    fn find(&self, path: &str) -> Option<&Value> {
        let mut steps = path.split(['.', '[']).map(|it| it.trim_end_matches(']'));
        let first = steps.next()?;
        let scope = self.scopes.iter().rev().find(|(name, _)| *name == first);
        let begin = scope.map(|(_, it)| it).or_else(|| self.values.get(first))?;
        let found = steps.try_fold(begin, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            Value::Object(fields) => fields.get(step),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        });
        found.filter(|it| !it.is_null())
    }
}

/// Texts as they are, data as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(it) => it.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => text::shown(value),
    }
}

fn filtered(value: Value, name: &str, argument: Option<&Value>) -> Result<Value, String> {
    Ok(match name {
        "default" if value.is_null() => argument.cloned().ok_or("expected a value in brackets")?,
        "default" => value,
        "upper" => plain(&value).to_uppercase().into(),
        "lower" => plain(&value).to_lowercase().into(),
        "trim" => plain(&value).trim().into(),
        "quote" => Value::from(plain(&value)).to_string().into(),
        "json" => value.to_string().into(),
        "yaml" => yaml::write(&value)?.trim_end().into(),
        "base64" => STANDARD.encode(plain(&value)).into(),
        "length" => match &value {
            Value::Array(items) => items.len().into(),
            Value::Object(fields) => fields.len().into(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                plain(&value).chars().count().into()
            }
        },
        "join" => {
            let items = value.as_array().ok_or("expected a list")?;
            let separator = argument.and_then(Value::as_str).unwrap_or_default();
            Value::from(items.iter().map(plain).collect::<Vec<_>>().join(separator))
        }
        // The first line stays: the place in the template has its own indent.
        _ => {
            let count = argument.and_then(Value::as_u64).ok_or("expected a number in brackets")?;
            let count = usize::try_from(count).ok().filter(|it| *it <= 200).ok_or("at most 200")?;
            let text = plain(&value);
            let lines: Vec<_> = text.split('\n').collect();
            lines.join(&format!("\n{}", " ".repeat(count))).into()
        }
    })
}
