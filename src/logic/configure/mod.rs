//! Settings by name: how scripts, `kopf.yaml` and the environment read and change them.
//!
//! All of them take and give plain values, so that a setting means the same everywhere; `table.rs` has one line for each
//! setting, and the reference is generated from it. Durations are seconds or `"10m"` on the way in and seconds on the way
//! out; an absent limit is null.

mod check;
mod limits;
mod storages;
mod table;
mod value;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::{
    storages::{STORAGES, storage},
    table::TABLE,
};
use super::nearest::nearest;
use crate::settings::Settings;

/// One setting, as users know it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `settings.GROUP.name`
    pub group: &'static str,
    /// `settings.group.NAME`
    pub name: &'static str,
    /// What it is for, in the words of the reference.
    pub doc: &'static str,
    /// What it takes, as the end of "expected …".
    pub takes: &'static str,
    /// What kind of value that is.
    pub shape: Shape,
    /// Whether start-up handlers may change it. The limits of scripts are not theirs to change.
    pub by_scripts: bool,
    get: fn(&Settings) -> Value,
    set: fn(&mut Settings, &Value) -> Result<(), String>,
}

/// What kind of value a setting takes, where that makes a difference to how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number, a truth, a duration, a list.
    Plain,
    /// A text, also if it looks like a number.
    Text,
    /// A map whose items are settings of their own.
    Map,
}

impl Setting {
    /// Its present value.
    pub fn get(&self, settings: &Settings) -> Value {
        (self.get)(settings)
    }

    /// Changes it; the error names it and says what it takes.
    pub fn set(&self, settings: &mut Settings, value: &Value) -> Result<(), String> {
        let (group, name) = (self.group, self.name);
        (self.set)(settings, value).map_err(|problem| format!("settings.{group}.{name}: {problem}"))
    }

    /// Changes one item of a map; null takes it away.
    pub fn set_item(&self, settings: &mut Settings, key: &str, value: Value) -> Result<(), String> {
        let mut items = match self.get(settings) {
            Value::Object(items) => items,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        if value.is_null() {
            items.shift_remove(key);
        } else if !value.is_string() {
            let (group, name) = (self.group, self.name);
            return Err(format!(
                "settings.{group}.{name}[{key:?}]: expected a string, got {value}"
            ));
        } else {
            items.insert(key.to_owned(), value);
        }
        self.set(settings, &Value::Object(items))
    }
}

/// A setting that was asked for by a name of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated(pub &'static str);

/// Kopf's texts about names of the past.
const BATCHING: Outdated = Outdated(
    "Batching settings are now queueing settings. Please rename settings.batching to settings.queueing.",
);
const BATCH_WINDOW: Outdated = Outdated(
    "Time-based event batching was removed. Please stop configuring settings.queueing.batch_window.",
);

/// Settings of Kopf that have no meaning here, and why.
const FOREIGN: &[(&str, &str, &str)] = &[(
    "execution",
    "executor",
    "scripts have no executors; settings.execution.max_workers limits the Rhai handlers that run at once",
)];

/// Finds a setting, and says if its name is one of the past. The error names the nearest one.
pub fn find(group: &str, name: &str) -> Result<(&'static Setting, Option<Outdated>), String> {
    let (group, renamed) = match group {
        "batching" => ("queueing", Some(BATCHING)),
        _ => (group, None),
    };
    let found = TABLE.iter().find(|it| it.group == group && it.name == name);
    let setting = found.ok_or_else(|| unknown(group, name))?;
    let removed = ((group, name) == ("queueing", "batch_window")).then_some(BATCH_WINDOW);
    Ok((setting, removed.or(renamed)))
}

/// The group of this name. The error names the nearest one.
pub fn group(name: &str) -> Result<&'static str, String> {
    let known = groups().chain(["batching"]).find(|it| *it == name);
    known.ok_or_else(|| {
        let hint = hint(nearest(name, groups()));
        format!("there is no group of settings settings.{name}{hint}")
    })
}

/// The names of all groups, in order.
pub fn groups() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    let groups = TABLE.iter().map(|it| it.group);
    groups.filter(move |group| std::mem::replace(&mut last, group) != *group)
}

fn unknown(group: &str, name: &str) -> String {
    if let Err(problem) = self::group(group) {
        return problem;
    }
    let foreign = FOREIGN.iter().find(|(its, known, _)| (*its, *known) == (group, name));
    if let Some((_, _, reason)) = foreign {
        return format!("there is no setting settings.{group}.{name}: {reason}");
    }
    let names = || TABLE.iter().filter(|it| it.group == group).map(|it| it.name);
    let hint = match nearest(name, names()) {
        Some(name) => hint(Some(name)),
        None => format!("; there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("there is no setting settings.{group}.{name}{hint}")
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |it| format!("; did you mean `{it}`?"))
}
