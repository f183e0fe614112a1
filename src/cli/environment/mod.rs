//! Environment variables: `KOPF_RUN_…` for options, `KOPF_SETTINGS_GROUP__NAME` for settings.
//!
//! Pure functions over a lookup. An empty variable counts as unset.

#[cfg(test)]
mod tests;

use clap::ValueEnum;
use serde_json::Value;

use crate::cli::{assignment::Assignment, report::Report};
use crate::logic::{
    configure::{self, Outdated, Setting, SettingShape},
    text::nearest::nearest,
};

/// Looks up an environment variable; unset ones are `None`.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The prefix of the variables of settings.
const SETTINGS: &str = "KOPF_SETTINGS_";

/// The commands with variables, and the names of their variables after the prefix `KOPF_COMMAND_`. The names are Kopf's, even if
/// the option has another name.
pub const COMMANDS: &[(&str, &[&str])] = &[
    (
        "RUN",
        &[
            "CLUSTERWIDE",
            "NAMESPACES",
            "NAMESPACE",
            "STANDALONE",
            "DEV",
            "PEERING",
            "PRIORITY",
            "LEADER_ELECT",
            "LEASE",
            "WEBHOOK_SERVICE",
            "WEBHOOK_URL",
            "WEBHOOK_PORT",
            "LIVENESS_ENDPOINT",
            "HEALTH",
            "NO_RELOAD",
            "GUARD_CONFIGMAPS",
            "RELOAD_POLL",
            "FROM_CONFIGMAP",
            "FROM_CONFIGMAP_SELECTOR",
            "ALLOW_NET",
            "ALLOW_ENV",
            "ALLOW_READ",
            "ALLOW_INSECURE",
            "ALLOW_SCRATCH",
            "MODULES",
            "CONFIG",
            "VERBOSE",
            "DEBUG",
            "QUIET",
            "LOG_FORMAT",
            "LOG_PREFIX",
            "LOG_REFKEY",
            "COLOR",
        ],
    ),
    ("FREEZE", KEEP_ALIVE),
    ("RESUME", KEEP_ALIVE),
];

/// The variables of `kopf freeze` and `kopf resume`.
const KEEP_ALIVE: &[&str] = &[
    "CLUSTERWIDE",
    "NAMESPACES",
    "NAMESPACE",
    "ID",
    "DEV",
    "PEERING",
    "PRIORITY",
    "LIFETIME",
    "MESSAGE",
    "VERBOSE",
    "DEBUG",
    "QUIET",
    "LOG_FORMAT",
    "LOG_PREFIX",
    "LOG_REFKEY",
    "COLOR",
];

/// Wrong names that users try because options have these names.
const ODD: &[(&str, &str)] = &[
    ("ALL_NAMESPACES", "CLUSTERWIDE"),
    ("LIVENESS", "LIVENESS_ENDPOINT"),
    ("PEERING_NAME", "PEERING"),
    ("MODULE", "MODULES"),
];

/// The variables of one command.
pub struct Environment<'a> {
    lookup: Lookup<'a>,
    command: &'static str,
}

impl<'a> Environment<'a> {
    /// Returns the variables that start with `KOPF_COMMAND_`; the command in upper case.
    pub fn new(lookup: Lookup<'a>, command: &'static str) -> Self {
        Environment { lookup, command }
    }

    /// Returns the full name of a variable.
    pub fn name(&self, name: &str) -> String {
        format!("KOPF_{}_{name}", self.command)
    }

    /// Returns a string; `None` if the variable is unset or empty.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(&self.name(name)).filter(|it| !it.is_empty())
    }

    /// Returns a flag; unset is false.
    pub fn flag(&self, name: &str) -> Result<bool, Report> {
        Ok(self.truth(name)?.unwrap_or(false))
    }

    /// Returns a flag that may be unset.
    pub fn truth(&self, name: &str) -> Result<Option<bool>, Report> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => Ok(Some(true)),
            "0" | "false" | "f" | "no" | "n" | "off" => Ok(Some(false)),
            _ => Err(Report::usage(format!(
                "{} is '{text}', which is not a boolean",
                self.name(name)
            ))
            .with_hint("use one of: true, false, yes, no, on, off, 1, 0")),
        }
    }

    /// Returns an integer; `None` if the variable is unset or empty.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Report> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_problem| {
            Report::usage(format!("{} is '{text}', which is not an integer", self.name(name)))
        })
    }

    /// Returns a list, separated by white space.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.text(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    /// Returns one of several words.
    pub fn choice<T: ValueEnum>(&self, name: &str) -> Result<Option<T>, Report> {
        let Some(text) = self.text(name) else { return Ok(None) };
        choice(&self.name(name), &text).map(Some)
    }
}

/// Parses one of several words; the error contains the place.
pub fn choice<T: ValueEnum>(place: &str, text: &str) -> Result<T, Report> {
    let ignore_case = true;
    T::from_str(text.trim(), ignore_case).map_err(|_problem| {
        let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<_> = words.map(|it| it.get_name().to_owned()).collect();
        Report::usage(format!("{place} is '{text}', which is unknown"))
            .with_hint(format!("use one of: {}", words.join(", ")))
    })
}

/// Returns the settings that variables set.
pub fn settings(lookup: Lookup<'_>) -> Result<Vec<Assignment>, Report> {
    let mut assignments = Vec::new();
    for setting in configure::TABLE {
        let origin = variable(setting);
        let Some(text) = lookup(&origin).filter(|it| !it.is_empty()) else { continue };
        let value = value(setting, &text).map_err(|it| Report::usage(format!("{origin}: {it}")))?;
        assignments.push(Assignment { setting, value, origin });
    }
    Ok(assignments)
}

/// Returns the variable of a setting.
pub fn variable(setting: &Setting) -> String {
    format!("{SETTINGS}{}__{}", setting.group, setting.name).to_ascii_uppercase()
}

/// Parses the value of a setting in a string: strings are taken unchanged, everything else is parsed as in `kopf.yaml`, and `none`
/// is null.
pub fn value(setting: &Setting, text: &str) -> Result<Value, String> {
    match setting.shape {
        SettingShape::Text => Ok(text.into()),
        SettingShape::Plain | SettingShape::Map if text.trim().eq_ignore_ascii_case("none") => {
            Ok(Value::Null)
        }
        SettingShape::Plain | SettingShape::Map => serde_saphyr::from_str(text)
            .map_err(|_problem| format!("expected {}, got '{text}'", setting.takes)),
    }
}

/// Checks for unknown variables: those of settings are errors, those of options are warnings.
pub fn check<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<String>, Report> {
    let mut warnings = Vec::new();
    for name in names.filter(|it| !is_service_link(it)) {
        if let Some(rest) = name.strip_prefix(SETTINGS) {
            warnings.extend(check_setting(name, rest)?);
        } else {
            warnings.extend(check_option(name));
        }
    }
    Ok(warnings)
}

/// Returns whether Kubernetes sets this variable: it describes the services of the namespace to each pod, in variables such as
/// `KOPF_RUN_SERVICE_HOST` for a service with the name `kopf-run`.
fn is_service_link(name: &str) -> bool {
    let ends = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"];
    ends.iter().any(|it| name.ends_with(it))
        || name.contains("_SERVICE_PORT_")
        || name.contains("_PORT_")
}

fn check_setting(name: &str, rest: &str) -> Result<Option<String>, Report> {
    let lower = rest.to_ascii_lowercase();
    let found = lower.split_once("__").map(|(group, setting)| configure::find(group, setting));
    match found {
        Some(Ok((setting, outdated))) if variable(setting) == *name => {
            Ok(outdated.map(|Outdated(text)| format!("{name}: {text}")))
        }
        Some(Ok((setting, _))) => {
            let right = variable(setting);
            Err(Report::usage(format!("{name} has no effect"))
                .with_hint(format!("write it as {right}")))
        }
        Some(Err(problem)) => Err(Report::usage(format!("{name}: {problem}"))),
        None => {
            let known: Vec<_> = configure::TABLE.iter().map(variable).collect();
            let report = Report::usage(format!("{name} is not a setting"));
            Err(match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => report.with_hint(format!("did you mean {near}?")),
                None => report.with_hint("write it as KOPF_SETTINGS_GROUP__NAME"),
            })
        }
    }
}

fn check_option(name: &str) -> Option<String> {
    let (command, rest) = name.strip_prefix("KOPF_")?.split_once('_')?;
    let (_, known) = COMMANDS.iter().find(|(it, _)| *it == command)?;
    if known.contains(&rest) {
        return None;
    }
    let odd = ODD.iter().find(|(it, _)| *it == rest).map(|(_, right)| *right);
    let right = odd.or_else(|| nearest(rest, known.iter().copied()));
    let hint = right.map_or_else(String::new, |it| format!("; did you mean KOPF_{command}_{it}?"));
    Some(format!("The environment variable {name} is unknown and has no effect{hint}"))
}
