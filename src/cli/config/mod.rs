//! `kopf.yaml`: run options and settings in a file.
//!
//! The keys are the long options of `kopf run` without their dashes, and `settings` with groups of settings. An unknown key is an
//! error with its line: a misspelled key must not be ignored silently.

mod scripts;
mod yaml;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

pub use self::scripts::ScriptEntry;
use self::yaml::{YamlContent, YamlEntry, YamlNode};
use crate::cli::{assignment::Assignment, report::Report};
use crate::logic::{
    configure::{self, Outdated},
    text::{duration, nearest::nearest},
};

/// The default name of the file.
pub const NAME: &str = "kopf.yaml";

/// Maximum size of the file in bytes: a dump that is named by mistake must not fill the memory.
const BYTES_MAX: u64 = 1 << 20;

/// The type of an option in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionType {
    /// A boolean.
    Flag,
    /// A string.
    Text,
    /// A string or a list of strings.
    Texts,
    /// An integer.
    Number,
    /// Seconds, or a string with a unit.
    Duration,
}

/// The keys next to `settings`, with their types.
pub const KEYS: &[(&str, OptionType)] = &[
    ("paths", OptionType::Texts),
    ("all-namespaces", OptionType::Flag),
    ("namespace", OptionType::Texts),
    ("standalone", OptionType::Flag),
    ("dev", OptionType::Flag),
    ("peering", OptionType::Text),
    ("priority", OptionType::Number),
    ("leader-elect", OptionType::Flag),
    ("lease", OptionType::Text),
    ("webhook-service", OptionType::Text),
    ("webhook-url", OptionType::Text),
    ("webhook-port", OptionType::Number),
    ("no-reload", OptionType::Flag),
    ("guard-configmaps", OptionType::Flag),
    ("reload-poll", OptionType::Duration),
    ("from-configmap", OptionType::Texts),
    ("from-configmap-selector", OptionType::Texts),
    ("allow-net", OptionType::Texts),
    ("allow-env", OptionType::Texts),
    ("allow-read", OptionType::Texts),
    ("allow-insecure", OptionType::Texts),
    ("allow-scratch", OptionType::Texts),
    ("liveness", OptionType::Text),
    ("health", OptionType::Text),
    ("verbose", OptionType::Flag),
    ("debug", OptionType::Flag),
    ("quiet", OptionType::Flag),
    ("log-format", OptionType::Text),
    ("log-prefix", OptionType::Flag),
    ("log-refkey", OptionType::Text),
    ("color", OptionType::Text),
];

/// The parsed content of a `kopf.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The path of the file as the user would write it.
    pub path: PathBuf,
    /// Values by the keys of [`KEYS`], with their locations in the file; a single string of a list option is stored as a list.
    options: BTreeMap<&'static str, (Value, String)>,
    /// The settings, in the order of the file.
    pub settings: Vec<Assignment>,
    /// The permissions of single scripts.
    pub scripts: Vec<ScriptEntry>,
    /// Warnings about deprecated names.
    pub warnings: Vec<String>,
}

impl Config {
    /// Returns a boolean, if the file has it.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.options.get(key)?.0.as_bool()
    }

    /// Returns an integer, if the file has it.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.options.get(key)?.0.as_i64()
    }

    /// Returns a string and its location, if the file has it.
    pub fn text(&self, key: &str) -> Option<(&str, &str)> {
        let (value, place) = self.options.get(key)?;
        Some((value.as_str()?, place))
    }

    /// Returns a duration and its location, if the file has it.
    pub fn duration(&self, key: &str) -> Option<(Duration, &str)> {
        let (value, place) = self.options.get(key)?;
        Some((duration::parse(value)?, place))
    }

    /// Returns a list, if the file has it.
    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        Some(self.texts_at(key)?.0)
    }

    /// Returns a list and its location, if the file has it.
    pub fn texts_at(&self, key: &str) -> Option<(Vec<String>, &str)> {
        let (value, place) = self.options.get(key)?;
        let items = value.as_array()?.iter().filter_map(Value::as_str);
        Some((items.map(str::to_owned).collect(), place))
    }

    /// Returns the scripts in the file; their paths are relative to the file.
    pub fn paths(&self) -> Vec<PathBuf> {
        let base = self.path.parent().unwrap_or(Path::new(""));
        self.texts("paths").unwrap_or_default().iter().map(|it| base.join(it)).collect()
    }
}

/// Reads the given file, or else the `kopf.yaml` in the current directory or next to the scripts, if it exists.
pub fn find(
    named: Option<&Path>,
    scripts: &[PathBuf],
    here: &Path,
) -> Result<Option<Config>, Report> {
    if let Some(path) = named {
        return read(path, here).map(Some);
    }
    let mut places = vec![PathBuf::new()];
    for path in scripts {
        let is_directory = here.join(path).is_dir();
        places.push(if is_directory { path.clone() } else { path.parent().unwrap_or(path).into() });
    }
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in places.into_iter().map(|it| it.join(NAME)) {
        // Two paths may lead to the same file.
        let Ok(real) = fs::canonicalize(here.join(&path)) else { continue };
        if found.iter().all(|(_, known)| *known != real) {
            found.push((path, real));
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [(path, _)] => read(path, here).map(Some),
        [(one, _), (other, _), ..] => Err(Report::usage(format!(
            "there are two configurations: '{}' and '{}'",
            one.display(),
            other.display()
        ))
        .with_hint("choose one with --config FILE, or move the other away")),
    }
}

fn read(path: &Path, here: &Path) -> Result<Config, Report> {
    let place = here.join(path);
    let name = path.display();
    let text = match fs::metadata(&place) {
        Ok(kind) if kind.len() > BYTES_MAX => {
            return Err(Report::usage(format!("'{name}' is larger than {} MiB", BYTES_MAX >> 20)));
        }
        Ok(_) => fs::read_to_string(&place),
        Err(problem) => Err(problem),
    };
    let text = text.map_err(|problem| {
        if problem.kind() == io::ErrorKind::NotFound {
            Report::usage(format!("there is no file '{name}'"))
                .with_hint("check the spelling and the current directory")
        } else if problem.kind() == io::ErrorKind::InvalidData {
            Report::usage(format!("'{name}' is not UTF-8")).with_hint("save the file in UTF-8")
        } else {
            Report::usage(format!("cannot read '{name}': {problem}"))
        }
    })?;
    parse(path, &text)
}

/// Parses the text of a file.
pub fn parse(path: &Path, text: &str) -> Result<Config, Report> {
    let place = |line: u64| format!("{}:{line}", path.display());
    let root = yaml::parse(text)
        .map_err(|(line, reason)| wrong(&place(line.max(1)), &format!("invalid YAML: {reason}")))?;
    let mut config = Config { path: path.into(), ..Config::default() };
    for YamlEntry { line, key, value } in entries(&root, "a map of options", &place)? {
        if key == "settings" {
            settings(value, &place, &mut config)?;
            continue;
        }
        if key == "scripts" {
            scripts::read(value, &place, &mut config)?;
            continue;
        }
        let known = KEYS.iter().find(|(name, _)| name == key);
        let (name, takes) = known.ok_or_else(|| unknown(&place(*line), key))?;
        let value = option(name, *takes, value, &place(value.line.max(*line)))?;
        if !value.is_null() {
            config.options.insert(name, (value, place(*line)));
        }
    }
    Ok(config)
}

/// Returns the entries of a map; null is an empty map.
fn entries<'a>(
    node: &'a YamlNode,
    expected: &str,
    place: &dyn Fn(u64) -> String,
) -> Result<&'a [YamlEntry], Report> {
    match &node.content {
        YamlContent::Map(entries) => Ok(entries),
        YamlContent::Scalar(Value::Null) => Ok(&[]),
        YamlContent::List(_) | YamlContent::Scalar(_) => {
            let problem = format!("expected {expected}, got {}", node.plain());
            Err(wrong(&place(node.line.max(1)), &problem))
        }
    }
}

fn settings(
    groups: &YamlNode,
    place: &dyn Fn(u64) -> String,
    config: &mut Config,
) -> Result<(), Report> {
    for YamlEntry { line, key: group, value: names } in
        entries(groups, "groups of settings", place)?
    {
        configure::group(group).map_err(|it| wrong(&place(*line), &it))?;
        for YamlEntry { line, key: name, value } in entries(names, "a group of settings", place)? {
            let (setting, outdated) =
                configure::find(group, name).map_err(|it| wrong(&place(*line), &it))?;
            if let Some(Outdated(text)) = outdated {
                config.warnings.push(format!("{}: {text}", place(*line)));
            }
            // The value of a key may start on a later line.
            let origin = place(value.line.max(*line));
            config.settings.push(Assignment { setting, value: value.plain(), origin });
        }
    }
    Ok(())
}

/// Returns the value of an option, as a list if the option takes one.
fn option(name: &str, takes: OptionType, node: &YamlNode, place: &str) -> Result<Value, Report> {
    let value = node.plain();
    let (fits, expected) = match takes {
        OptionType::Flag => (value.is_boolean(), "true or false"),
        OptionType::Text => (value.is_string(), "a string"),
        OptionType::Number => (value.is_i64(), "an integer"),
        OptionType::Duration => {
            (duration::parse(&value).is_some(), "seconds, or a string with a unit such as 2s")
        }
        OptionType::Texts if value.is_string() => return Ok(Value::Array(vec![value])),
        OptionType::Texts => (
            value.as_array().is_some_and(|it| it.iter().all(Value::is_string)),
            "a string or a list of strings",
        ),
    };
    if fits || value.is_null() {
        return Ok(value);
    }
    let problem = wrong(place, &format!("{name}: expected {expected}, got {value}"));
    Err(match (name, value.as_u64()) {
        // The port alone is a common mistake.
        ("health", Some(port)) => problem.with_hint(format!("write health: \"0.0.0.0:{port}\"")),
        _ => problem,
    })
}

fn unknown(place: &str, key: &str) -> Report {
    let known = KEYS.iter().map(|(name, _)| *name).chain(["settings", "scripts"]);
    let problem = wrong(place, &format!("there is no option `{key}`"));
    match nearest(key, known.clone()) {
        _ if configure::group(key).is_ok() => {
            problem.with_hint("groups of settings belong below `settings:`")
        }
        Some(name) => problem.with_hint(format!("did you mean `{name}`?")),
        None => {
            problem.with_hint(format!("the options are: {}", known.collect::<Vec<_>>().join(", ")))
        }
    }
}

fn wrong(place: &str, problem: &str) -> Report {
    Report::usage(format!("{place}: {problem}"))
}
