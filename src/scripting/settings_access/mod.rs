//! `ctx.settings` of both languages: every setting by group and name, as plain values.
//!
//! Durations are seconds or `"10m"` on the way in and seconds on the way out; an absent limit is null.

mod value;

#[cfg(test)]
mod tests;

use serde_json::Value;

use self::value::Setting;
pub(crate) use self::value::duration as duration_of;
use crate::scripting::text::did_you_mean;
use crate::settings::Settings;

/// One setting.
struct Knob {
    group: &'static str,
    name: &'static str,
    get: fn(&Settings) -> Value,
    set: fn(&mut Settings, Value) -> Result<(), String>,
}

/// The table line of one setting: its type says which values it takes.
macro_rules! knob {
    ($group:ident.$name:ident) => {
        Knob {
            group: stringify!($group),
            name: stringify!($name),
            get: |settings| settings.$group.$name.to_json(),
            set: |settings, value| {
                settings.$group.$name = Setting::from_json(value)?;
                Ok(())
            },
        }
    };
}

/// All settings, in the order of `settings.rs`.
const KNOBS: &[Knob] = &[
    knob!(process.ultimate_exiting_timeout),
    knob!(posting.enabled),
    knob!(posting.reporting_component),
    knob!(posting.reporting_instance),
    knob!(posting.event_name_prefix),
    knob!(peering.name),
    knob!(peering.stealth),
    knob!(peering.priority),
    knob!(peering.lifetime),
    knob!(peering.mandatory),
    knob!(peering.standalone),
    knob!(peering.clusterwide),
    Knob {
        group: "peering",
        name: "namespaced",
        get: |settings| (!settings.peering.clusterwide).to_json(),
        set: |settings, value| {
            settings.peering.clusterwide = !bool::from_json(value)?;
            Ok(())
        },
    },
    knob!(leadership.enabled),
    knob!(leadership.name),
    knob!(leadership.namespace),
    knob!(leadership.duration),
    knob!(leadership.renew_deadline),
    knob!(leadership.retry_period),
    knob!(watching.server_timeout),
    knob!(watching.client_timeout),
    knob!(watching.reconnect_backoff),
    knob!(watching.inactivity_timeout),
    knob!(watching.chunk_size),
    knob!(queueing.worker_limit),
    knob!(queueing.idle_timeout),
    knob!(queueing.exit_timeout),
    knob!(queueing.error_delays),
    knob!(scanning.disabled),
    knob!(execution.default_backoff),
    knob!(execution.max_workers),
    knob!(networking.request_timeout),
    knob!(networking.connect_timeout),
    knob!(networking.error_backoffs),
    knob!(networking.enforce_retry_after),
    knob!(persistence.finalizer),
    knob!(persistence.progress_storage),
    knob!(persistence.diffbase_storage),
    knob!(persistence.consistency_timeout),
];

/// Whether there is a group of this name.
pub(crate) fn is_group(group: &str) -> bool {
    KNOBS.iter().any(|knob| knob.group == group)
}

/// The names of all groups, in order.
pub(crate) fn groups() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KNOBS
        .iter()
        .map(|knob| knob.group)
        .filter(move |group| std::mem::replace(&mut last, group) != *group)
}

/// The names in a group, in order.
pub(crate) fn names(group: &str) -> impl Iterator<Item = &'static str> {
    KNOBS.iter().filter(move |knob| knob.group == group).map(|knob| knob.name)
}

/// The value of a setting; `None` if there is no such setting.
pub(crate) fn get(settings: &Settings, group: &str, name: &str) -> Option<Value> {
    find(group, name).map(|knob| (knob.get)(settings))
}

/// Changes a setting; the error says what is wrong with the name or the value.
pub(crate) fn set(
    settings: &mut Settings,
    group: &str,
    name: &str,
    value: Value,
) -> Result<(), String> {
    let knob = find(group, name).ok_or_else(|| unknown(group, name))?;
    (knob.set)(settings, value).map_err(|problem| format!("settings.{group}.{name}: {problem}"))
}

/// The message about a setting that does not exist; names the nearest one.
pub(crate) fn unknown(group: &str, name: &str) -> String {
    if is_group(group) {
        let hint = did_you_mean(name, names(group), "");
        format!("there is no setting settings.{group}.{name}{hint}")
    } else {
        format!(
            "there is no group of settings settings.{group}{}",
            did_you_mean(group, groups(), "")
        )
    }
}

fn find(group: &str, name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.group == group && knob.name == name)
}
