//! Validation of native objects, with the messages of the real server.

pub(super) mod autoscalers;
pub(super) mod config;
mod containers;
pub(super) mod jobs;
pub(crate) mod meta;
pub(crate) mod names;
pub(super) mod network;
pub(super) mod pods;
pub(super) mod policies;
pub(super) mod rbac;
pub(super) mod services;
mod status;
pub(super) mod storage;
pub(super) mod system;
mod volumes;
pub(super) mod webhooks;
pub(super) mod workloads;

use serde_json::Value;

use super::quantity::Quantity;
use crate::refusal::{ProblemKind, ValidationProblem};

/// The problems found so far.
pub(crate) type Problems = Vec<ValidationProblem>;

/// A value inside of an object, with its field path.
#[derive(Clone, Debug)]
pub(crate) struct FieldValue<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
}

impl<'a> FieldValue<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// Returns a field; null if it is missing.
    pub(crate) fn get(&self, name: &str) -> Self {
        Self { path: self.at(name), value: self.value.get(name).unwrap_or(&Value::Null) }
    }

    /// Returns the path of a field.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the items of a list, with their paths.
    pub(crate) fn items(&self) -> Vec<Self> {
        let list = self.value.as_array().into_iter().flatten().enumerate();
        list.map(|(at, value)| Self { path: format!("{}[{at}]", self.path), value }).collect()
    }

    /// Returns the entries of a map, with their keys and paths.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| {
            (key.as_str(), Self { path: format!("{}[{key}]", self.path), value })
        })
        .collect()
    }

    /// Returns the same value with another path.
    pub(crate) fn named(&self, path: impl Into<String>) -> Self {
        Self { path: path.into(), value: self.value }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    pub(crate) fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or(false)
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(it) => it.is_empty(),
            Value::Array(it) => it.is_empty(),
            Value::Object(it) => it.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    pub(crate) fn required(&self, detail: &str) -> ValidationProblem {
        ValidationProblem::required(self.path.clone(), detail)
    }

    pub(crate) fn invalid(&self, detail: impl Into<String>) -> ValidationProblem {
        ValidationProblem::invalid(self.path.clone(), self.value.clone(), detail)
    }

    pub(crate) fn forbidden(&self, detail: &str) -> ValidationProblem {
        ValidationProblem::forbidden(self.path.clone(), detail)
    }

    pub(crate) fn duplicate(&self) -> ValidationProblem {
        ValidationProblem::new(self.path.clone(), ProblemKind::Duplicate(self.value.clone()))
    }

    /// Makes the problem of a value that is not one of the supported ones.
    pub(crate) fn unsupported(&self, supported: &[&str]) -> ValidationProblem {
        let supported = supported.iter().copied().map(String::from).collect();
        ValidationProblem::new(
            self.path.clone(),
            ProblemKind::NotSupported(self.value.clone(), supported),
        )
    }
}

/// Checks that a string is one of the supported values. A missing one is reported, too.
pub(super) fn one_of(out: &mut Problems, field: &FieldValue<'_>, supported: &[&str]) {
    if field.text().is_empty() {
        out.push(field.required(""));
    } else if !supported.contains(&field.text()) {
        out.push(field.unsupported(supported));
    }
}

/// Checks that a string is one of the supported values, if it is set.
pub(super) fn maybe_one_of(out: &mut Problems, field: &FieldValue<'_>, supported: &[&str]) {
    if field.is_set() && !supported.contains(&field.text()) {
        out.push(field.unsupported(supported));
    }
}

/// Checks a string against a rule, and reports all of its messages.
pub(super) fn obey(out: &mut Problems, field: &FieldValue<'_>, rule: fn(&str) -> Vec<String>) {
    out.extend(rule(field.text()).into_iter().map(|it| field.invalid(it)));
}

pub(super) fn not_negative(out: &mut Problems, field: &FieldValue<'_>) {
    if field.number() < 0 {
        out.push(field.invalid("must be greater than or equal to 0"));
    }
}

pub(super) fn port(out: &mut Problems, field: &FieldValue<'_>) {
    if !(1..=65_535).contains(&field.number()) {
        out.push(field.invalid("must be between 1 and 65535, inclusive"));
    }
}

/// Checks the number or the name of a port.
pub(super) fn port_or_name(out: &mut Problems, field: &FieldValue<'_>) {
    if field.value.is_string() {
        obey(out, field, names::port_name);
    } else {
        port(out, field);
    }
}

/// Checks that a field has not changed.
pub(super) fn immutable(out: &mut Problems, new: &FieldValue<'_>, old: &FieldValue<'_>) {
    if new.value != old.value {
        out.push(new.invalid("field is immutable"));
    }
}

/// Validates a kind of which only the metadata is checked.
pub(super) fn plain(new: &Value, old: Option<&Value>) -> Problems {
    meta::object(new, old, names::dns_subdomain)
}

/// Returns the quantity of a field. Decoding has already refused invalid ones.
pub(super) fn amount(field: &FieldValue<'_>) -> Option<Quantity> {
    Quantity::parse(field.text()).ok()
}

pub(super) fn amount_not_negative(out: &mut Problems, field: &FieldValue<'_>) {
    if amount(field).is_some_and(Quantity::negative) {
        out.push(field.invalid("must be greater than or equal to 0"));
    }
}

/// Validates a change both as a new object and as a change, and reports the problems of both. The real server does so for some
/// kinds.
pub(super) fn twice(
    check: fn(&Value, Option<&Value>) -> Problems,
    new: &Value,
    old: Option<&Value>,
) -> Problems {
    if old.is_none() {
        return check(new, None);
    }
    let mut out = check(new, Some(new));
    out.extend(check(new, old));
    out
}
