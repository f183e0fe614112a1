//! What is wrong with native objects, in the words of the real server.

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
use crate::refusal::{Problem, ProblemKind};

/// What was found so far.
pub(crate) type Problems = Vec<Problem>;

/// A value inside of an object, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
}

impl<'a> Spot<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// A field; null if it is missing.
    pub(crate) fn get(&self, name: &str) -> Self {
        Self { path: self.at(name), value: self.value.get(name).unwrap_or(&Value::Null) }
    }

    /// The path of a field.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) }
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Vec<Self> {
        let list = self.value.as_array().into_iter().flatten().enumerate();
        list.map(|(at, value)| Self { path: format!("{}[{at}]", self.path), value }).collect()
    }

    /// The entries of a map, with their keys.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| {
            (key.as_str(), Self { path: format!("{}[{key}]", self.path), value })
        })
        .collect()
    }

    /// The same value under another name.
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

    pub(crate) fn required(&self, detail: &str) -> Problem {
        Problem::required(self.path.clone(), detail)
    }

    pub(crate) fn invalid(&self, detail: impl Into<String>) -> Problem {
        Problem::invalid(self.path.clone(), self.value.clone(), detail)
    }

    pub(crate) fn forbidden(&self, detail: &str) -> Problem {
        Problem::forbidden(self.path.clone(), detail)
    }

    pub(crate) fn duplicate(&self) -> Problem {
        Problem::new(self.path.clone(), ProblemKind::Duplicate(self.value.clone()))
    }

    /// Not one of the supported values.
    pub(crate) fn unsupported(&self, supported: &[&str]) -> Problem {
        let supported = supported.iter().copied().map(String::from).collect();
        Problem::new(self.path.clone(), ProblemKind::NotSupported(self.value.clone(), supported))
    }
}

/// One of a few texts; missing is refused as well.
pub(super) fn one_of(out: &mut Problems, spot: &Spot<'_>, supported: &[&str]) {
    if spot.text().is_empty() {
        out.push(spot.required(""));
    } else if !supported.contains(&spot.text()) {
        out.push(spot.unsupported(supported));
    }
}

/// One of a few texts, if it is set.
pub(super) fn maybe_one_of(out: &mut Problems, spot: &Spot<'_>, supported: &[&str]) {
    if spot.is_set() && !supported.contains(&spot.text()) {
        out.push(spot.unsupported(supported));
    }
}

/// All that a rule about texts says of one.
pub(super) fn obey(out: &mut Problems, spot: &Spot<'_>, rule: fn(&str) -> Vec<String>) {
    out.extend(rule(spot.text()).into_iter().map(|it| spot.invalid(it)));
}

pub(super) fn not_negative(out: &mut Problems, spot: &Spot<'_>) {
    if spot.number() < 0 {
        out.push(spot.invalid("must be greater than or equal to 0"));
    }
}

pub(super) fn port(out: &mut Problems, spot: &Spot<'_>) {
    if !(1..=65_535).contains(&spot.number()) {
        out.push(spot.invalid("must be between 1 and 65535, inclusive"));
    }
}

/// A number of a port, or its name.
pub(super) fn port_or_name(out: &mut Problems, spot: &Spot<'_>) {
    if spot.value.is_string() {
        obey(out, spot, names::port_name);
    } else {
        port(out, spot);
    }
}

/// What must not change.
pub(super) fn immutable(out: &mut Problems, new: &Spot<'_>, old: &Spot<'_>) {
    if new.value != old.value {
        out.push(new.invalid("field is immutable"));
    }
}

/// Kinds of which only the metadata is checked.
pub(super) fn plain(new: &Value, old: Option<&Value>) -> Problems {
    meta::object(new, old, names::dns_subdomain)
}

/// The amount at a spot; decoding has refused what is none.
pub(super) fn amount(spot: &Spot<'_>) -> Option<Quantity> {
    Quantity::parse(spot.text()).ok()
}

pub(super) fn amount_not_negative(out: &mut Problems, spot: &Spot<'_>) {
    if amount(spot).is_some_and(Quantity::negative) {
        out.push(spot.invalid("must be greater than or equal to 0"));
    }
}

/// Of some kinds, the real server checks a change both as a new object and as a change, and lists what it finds twice.
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
