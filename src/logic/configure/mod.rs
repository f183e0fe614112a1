//! Settings by name: how scripts, `kopf.yaml` and the environment read and change them.
//!
//! All of them read and write plain values, so that a setting means the same everywhere; `table.rs` has one line for each setting,
//! and the reference is generated from it. Durations are accepted as seconds or `"10m"` and returned as seconds; an absent limit is
//! null.

mod check;
mod limits;
mod setting;
mod storages;
mod table;
mod value;
mod webhooks;

#[cfg(test)]
mod tests;

pub use self::{
    setting::{Setting, SettingShape},
    storages::{STORAGES, storage},
    table::TABLE,
    webhooks::LOCAL_CLUSTERS,
};
use crate::logic::text::nearest::nearest;

/// A deprecated name of a setting was used; contains the message for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated(pub &'static str);

/// Kopf's messages about deprecated names.
const BATCHING: Outdated = Outdated(
    "Batching settings are now queueing settings. Please rename settings.batching to settings.queueing.",
);
const BATCH_WINDOW: Outdated = Outdated(
    "Time-based event batching was removed. Please stop configuring settings.queueing.batch_window.",
);

/// Settings of Kopf that do not apply here, and why.
const FOREIGN: &[(&str, &str, &str)] = &[(
    "execution",
    "executor",
    "scripts have no executors; settings.execution.max_workers limits the Rhai handlers that run at once",
)];

/// Finds a setting, and returns a note if its name is deprecated. The error suggests the nearest name.
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

/// Returns the group of this name. The error suggests the nearest one.
pub fn group(name: &str) -> Result<&'static str, String> {
    let known = groups().chain(["batching"]).find(|it| *it == name);
    known.ok_or_else(|| {
        let hint = hint(nearest(name, groups()));
        format!("there is no group of settings settings.{name}{hint}")
    })
}

/// Returns the names of all groups, in order.
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
