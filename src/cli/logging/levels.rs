//! Decides which lines are written: by the initial level, and by the levels that users have set since, also for single scripts.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{Registry, filter::Targets, reload};

use super::line::LogRecord;
use crate::call::TARGET_UNHANDLED;
use crate::cli::{
    args::LogFormat,
    options::{LogOptions, Verbosity},
};
use crate::sorted::CollectSorted as _;
use crate::telemetry::{LogLevels, SCRIPTS_MAX};

/// The names of levels.
const NAMES: [(&str, Level); 4] = [
    ("debug", Level::DEBUG),
    ("info", Level::INFO),
    ("warning", Level::WARN),
    ("error", Level::ERROR),
];
/// The name that restores the initial level.
const DEFAULT: &str = "default";

/// The levels of a log.
pub(super) struct Levels {
    start: Level,
    present: Mutex<CurrentLevels>,
    /// The filter of events, once the log is installed.
    filter: Mutex<Option<reload::Handle<Targets, Registry>>>,
}

struct CurrentLevels {
    level: Level,
    scripts: BTreeMap<String, Level>,
}

impl Levels {
    /// Creates the initial levels.
    pub(super) fn new(options: &LogOptions) -> Self {
        let start = match options.verbosity {
            Verbosity::Quiet => Level::WARN,
            Verbosity::Normal => Level::INFO,
            Verbosity::Verbose | Verbosity::Debug => Level::DEBUG,
        };
        let present = CurrentLevels { level: start, scripts: BTreeMap::new() };
        Levels { start, present: Mutex::new(present), filter: Mutex::default() }
    }

    /// Makes a filter that follows the levels.
    pub(super) fn filter(&self, options: &LogOptions) -> reload::Layer<Targets, Registry> {
        let (layer, handle) = reload::Layer::new(self.targets(options));
        *self.filter.lock() = Some(handle);
        layer
    }

    /// Returns whether to write a line.
    pub(super) fn admit(&self, record: &LogRecord) -> bool {
        let present = self.present.lock();
        if present.scripts.is_empty() && !record.is_own() && present.level == self.start {
            return true;
        }
        let is_library = !record.target.starts_with("kopf");
        let level = record.script().and_then(|it| present.scripts.get(it));
        is_library || record.level <= *level.unwrap_or(&present.level)
    }

    /// Returns the events that can be written. Targets of this program start with `kopf`; all others are libraries.
    fn targets(&self, options: &LogOptions) -> Targets {
        let present = self.present.lock();
        let own = present.scripts.values().fold(present.level, |it, level| it.max(*level));
        let own = LevelFilter::from_level(own);
        let is_logged = options.unhandled && options.format != LogFormat::Kopf;
        // The client logs every request that fails, which `cluster` reports better.
        let (client, libraries) = match options.verbosity {
            Verbosity::Quiet | Verbosity::Normal | Verbosity::Verbose => {
                (LevelFilter::OFF, LevelFilter::WARN)
            }
            Verbosity::Debug => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        };
        Targets::new()
            .with_target(TARGET_UNHANDLED, if is_logged { LevelFilter::DEBUG } else { own })
            .with_default(libraries)
            .with_target("kopf", own)
            .with_target("kube_client", client)
    }

    /// Returns the current levels.
    pub(super) fn levels(&self) -> LogLevels {
        let name = |level: &Level| {
            let known = NAMES.iter().find(|(_, it)| it == level);
            known.map(|(name, _)| (*name).to_owned()).unwrap_or_default()
        };
        let present = self.present.lock();
        let scripts = present.scripts.iter().map(|(script, it)| (script.clone(), name(it)));
        LogLevels { level: name(&present.level), scripts: scripts.collect_map() }
    }

    /// Sets the level of a script, or of everything else.
    pub(super) fn set(
        &self,
        script: Option<&str>,
        name: &str,
        options: &LogOptions,
    ) -> Result<(), String> {
        let known = NAMES.iter().find(|(it, _)| *it == name).map(|(_, level)| *level);
        if known.is_none() && name != DEFAULT {
            return Err("the level is one of debug, info, warning, error, default".into());
        }
        let mut present = self.present.lock();
        match (script, known) {
            (None, level) => present.level = level.unwrap_or(self.start),
            (Some(script), None) => drop(present.scripts.remove(script)),
            (Some(script), Some(level)) => {
                if present.scripts.len() >= SCRIPTS_MAX && !present.scripts.contains_key(script) {
                    return Err(format!("{SCRIPTS_MAX} scripts have their own levels already"));
                }
                present.scripts.insert(script.to_owned(), level);
            }
        }
        drop(present);
        let targets = self.targets(options);
        if let Some(filter) = &*self.filter.lock() {
            filter.reload(targets).map_err(|it| it.to_string())?;
        }
        Ok(())
    }
}
