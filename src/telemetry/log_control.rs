//! The levels of the log while the operator runs: the command line decides where lines go, the health endpoint changes what is
//! written.

use std::collections::BTreeMap;

/// Maximum number of scripts with separate levels.
pub const SCRIPTS_MAX: usize = 100;

/// The levels of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLevels {
    /// The level of all lines that are not about a script with a separate level.
    pub level: String,
    /// The levels of scripts, by file.
    pub scripts: BTreeMap<String, String>,
}

/// The control of the levels of the log.
pub trait LogControl: Send + Sync {
    /// Returns the current levels.
    fn levels(&self) -> LogLevels;

    /// Sets the level of one script, or of everything else. `default` restores the level of the start.
    ///
    /// # Errors
    /// Fails if there is no such level, or too many scripts have one.
    fn set_level(&self, script: Option<&str>, level: &str) -> Result<(), String>;
}
