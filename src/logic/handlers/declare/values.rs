//! Reads the values of options.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::function::Function;
use super::super::handler::{Callback, Criterion, ErrorsMode, InitialDelay, Kind};
use super::{
    Argument, DeclareError, Marker,
    options::{self, options_of},
};
use crate::logic::object::depth::DEPTH_MAX;
use crate::logic::text::duration;
use crate::settings::FieldPath;

const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// The options of one declaration; all of them are known.
pub(super) struct Options<'a>(&'a [(String, Argument)]);

impl<'a> Options<'a> {
    pub(super) fn of(kind: Kind, given: &'a [(String, Argument)]) -> Result<Self, DeclareError> {
        for (name, _) in given {
            if !options_of(kind).any(|it| it.name == name) {
                return Err(unknown(kind, name));
            }
        }
        Ok(Options(given))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns an option. Null counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a Argument> {
        let (_, argument) = self.0.iter().find(|(key, _)| key == name)?;
        match argument {
            Argument::Absent | Argument::Value(Value::Null) => None,
            Argument::Value(_)
            | Argument::Callback(_)
            | Argument::Marker(_)
            | Argument::List(_)
            | Argument::Map(_) => Some(argument),
        }
    }

    /// Reads an option with `read`; `None` from it is an error.
    pub(super) fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Argument) -> Option<T>,
    ) -> Result<Option<T>, DeclareError> {
        let Some(argument) = self.get(name) else { return Ok(None) };
        let Some(read) = read(argument) else {
            let is_duration = expected.starts_with(DURATION);
            let is_negative = is_duration && value(argument).is_some_and(duration::is_negative);
            let negative = if is_negative { ", and not negative" } else { "" };
            return Err(format!("option `{name}` must be {expected}{negative}").into());
        };
        Ok(Some(read))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, DeclareError> {
        self.read(name, "a string", |it| Some(value(it)?.as_str()?.to_owned()))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, DeclareError> {
        Ok(self.read(name, "true or false", |it| value(it)?.as_bool())?.unwrap_or(false))
    }

    pub(super) fn data(&self, name: &str) -> Result<Option<Value>, DeclareError> {
        self.read(name, "data, without functions inside", |it| value(it).cloned())
    }

    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, DeclareError> {
        self.read(name, DURATION, duration)
    }

    pub(super) fn initial_delay(&self) -> Result<Option<InitialDelay>, DeclareError> {
        let expected = format!("{DURATION}, or a function that returns seconds");
        self.read("initial_delay", &expected, |it| {
            let computed = function(it).map(InitialDelay::Computed);
            computed.or_else(|| duration(it).map(InitialDelay::Fixed))
        })
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, DeclareError> {
        self.read(name, "a non-negative integer", |it| {
            let number = value(it)?;
            // A language without integers passes whole-numbered floats.
            let whole = || number.as_f64().filter(|it| it.fract() == 0.0)?.to_string().parse().ok();
            number.as_u64().or_else(whole)
        })
    }

    pub(super) fn errors(&self) -> Result<Option<ErrorsMode>, DeclareError> {
        self.read("errors", "\"temporary\", \"permanent\" or \"ignored\"", |it| {
            match value(it)?.as_str()?.to_ascii_lowercase().as_str() {
                "ignored" => Some(ErrorsMode::Ignored),
                "temporary" => Some(ErrorsMode::Temporary),
                "permanent" => Some(ErrorsMode::Permanent),
                _ => None,
            }
        })
    }

    pub(super) fn field(&self, name: &str) -> Result<Option<FieldPath>, DeclareError> {
        let path = self.read(name, "a dotted string or a list of keys", |it| match value(it)? {
            Value::String(path) => Some(path.split('.').map(str::to_owned).collect()),
            Value::Array(keys) => texts(keys),
            // A language may have one empty table for both lists and maps.
            Value::Object(keys) if keys.is_empty() => Some(Vec::new()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        })?;
        if path.as_ref().is_some_and(|it: &FieldPath| it.len() > DEPTH_MAX) {
            return Err(format!("option `{name}` has more than {DEPTH_MAX} levels").into());
        }
        Ok(path.filter(|it| !it.is_empty()))
    }

    pub(super) fn operations(&self) -> Result<Vec<String>, DeclareError> {
        let list = self.read("operations", "a list of strings", |it| match value(it)? {
            Value::Array(items) => texts(items),
            Value::Object(items) if items.is_empty() => Some(Vec::new()),
            Value::String(one) => Some(vec![one.clone()]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        })?;
        if list.as_ref().is_some_and(Vec::is_empty) {
            return Err("operations should be either none or non-empty".into());
        }
        let mut all = list.unwrap_or_default();
        all.extend(self.text("operation")?.filter(|it| !all.contains(it)));
        match all.iter().find(|it| !OPERATIONS.contains(&it.as_str())) {
            Some(odd) => Err(format!("there is no operation {odd:?}, only {OPERATIONS:?}").into()),
            None => Ok(all),
        }
    }

    pub(super) fn match_conditions(&self) -> Result<Option<Value>, DeclareError> {
        self.read("match_conditions", "a list of maps with `name` and `expression`", |it| {
            let conditions = value(it)?.as_array()?;
            let is_text = |it: &Value, key: &str| it.get(key).is_some_and(Value::is_string);
            let is_valid = |it: &Value| {
                is_text(it, "name")
                    && is_text(it, "expression")
                    && it.as_object().is_some_and(|it| it.len() == 2)
            };
            conditions.iter().all(is_valid).then(|| Value::Array(conditions.clone()))
        })
    }

    pub(super) fn namespace_selector(&self) -> Result<Option<Value>, DeclareError> {
        let expected =
            "a map of labels, or a label selector with `matchLabels` and `matchExpressions`";
        self.read("namespace_selector", expected, |it| {
            let selector = value(it)?.as_object()?;
            let is_part = |it: &String| matches!(it.as_str(), "matchLabels" | "matchExpressions");
            if selector.keys().all(is_part) {
                return Some(Value::Object(selector.clone()));
            }
            let is_labels = selector.values().all(Value::is_string);
            is_labels.then(|| json!({ "matchLabels": selector }))
        })
    }

    pub(super) fn match_policy(&self) -> Result<Option<String>, DeclareError> {
        self.read("match_policy", "\"Exact\" or \"Equivalent\"", |it| {
            let policy = value(it)?.as_str()?;
            ["Exact", "Equivalent"].contains(&policy).then(|| policy.to_owned())
        })
    }

    /// Reads a function that is not a combination of functions.
    pub(super) fn function(&self, name: &str) -> Result<Option<Function>, DeclareError> {
        self.read(name, "a function", function)
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, DeclareError> {
        let list = self.read(name, "a string or a list of strings", |it| match value(it)? {
            Value::String(one) => Some(vec![one.clone()]),
            Value::Array(items) => texts(items),
            Value::Object(items) if items.is_empty() => Some(Vec::new()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        })?;
        Ok(list.unwrap_or_default())
    }

    pub(super) fn callback(&self, name: &str) -> Result<Option<Callback>, DeclareError> {
        self.read(name, "a function", |it| {
            let Argument::Callback(it) = it else { return None };
            Some(it.clone())
        })
    }

    pub(super) fn criterion(&self, name: &str) -> Result<Option<Criterion>, DeclareError> {
        self.read(name, "data, a function, kopf.PRESENT or kopf.ABSENT", criterion)
    }

    /// Reads filters by label or annotation.
    pub(super) fn criteria(&self, name: &str) -> Result<Vec<(String, Criterion)>, DeclareError> {
        let entries = self.read(name, "a map", |it| match it {
            Argument::Map(entries) => Some(entries.clone()),
            Argument::Value(Value::Object(map)) => Some(arguments(map)),
            Argument::Value(Value::Array(items)) if items.is_empty() => Some(Vec::new()),
            Argument::Value(_)
            | Argument::Absent
            | Argument::Callback(_)
            | Argument::Marker(_)
            | Argument::List(_) => None,
        })?;
        let pairs =
            entries.unwrap_or_default().into_iter().map(|(key, argument)| {
                match criterion(&argument) {
                    Some(Criterion::Equals(Value::Null)) | None => Err(DeclareError::new(
                        format!("`{name}` has an unsupported value for {key:?}"),
                        "use kopf.PRESENT or kopf.ABSENT",
                    )),
                    Some(it) => Ok((key, it)),
                }
            });
        pairs.collect()
    }
}

pub(super) const DURATION: &str =
    "seconds, or a duration such as \"500ms\", \"1.5s\", \"10m\", \"2h\", \"1d\"";

fn unknown(kind: Kind, name: &str) -> DeclareError {
    let message = format!("kopf.{} has no option `{name}`", kind.declared_by());
    DeclareError { message, hint: options::hint(kind, name) }
}

pub(super) fn function(argument: &Argument) -> Option<Function> {
    let Argument::Callback(Callback::Function(it)) = argument else { return None };
    Some(it.clone())
}

pub(super) fn value(argument: &Argument) -> Option<&Value> {
    let Argument::Value(it) = argument else { return None };
    Some(it)
}

fn arguments(map: &Map<String, Value>) -> Vec<(String, Argument)> {
    map.iter().map(|(key, value)| (key.clone(), Argument::Value(value.clone()))).collect()
}

fn texts(items: &[Value]) -> Option<Vec<String>> {
    items.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

fn criterion(argument: &Argument) -> Option<Criterion> {
    match argument {
        Argument::Value(it) => Some(Criterion::Equals(it.clone())),
        Argument::Callback(it) => Some(Criterion::Callback(it.clone())),
        Argument::Marker(Marker::Present) => Some(Criterion::Present),
        Argument::Marker(Marker::Absent) => Some(Criterion::Absent),
        Argument::Marker(Marker::Everything)
        | Argument::Absent
        | Argument::List(_)
        | Argument::Map(_) => None,
    }
}

pub(super) fn duration(argument: &Argument) -> Option<Duration> {
    duration::parse(value(argument)?)
}
