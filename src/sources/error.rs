//! Errors of paths and `ConfigMap`s that do not provide scripts.

use std::{io, path::PathBuf};

use super::problem::SourceProblem;
use crate::scripting::SCRIPT_BYTES_MAX;

/// The reason why a path does not provide scripts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No path was given, and the default locations do not exist.
    #[error("no scripts given, and no ./handlers.lua, ./handlers.rhai or ./handlers/ found")]
    NothingNamed,
    /// The path does not exist.
    #[error("there is no file or directory '{}'", .0.display())]
    Missing(PathBuf),
    /// The extension of the name is not that of a script.
    #[error("not a script: '{}' (expected .lua or .rhai)", .0.display())]
    UnknownLanguage(PathBuf),
    /// The system does not allow to read it.
    #[error("cannot read '{}': {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A device, a socket, a pipe.
    #[error("'{}' is neither a file nor a directory", .0.display())]
    Special(PathBuf),
    /// The file is too large for a script.
    #[error("'{}' has more than {} MiB: the limit for a script", .0.display(), SCRIPT_BYTES_MAX >> 20)]
    TooLarge(PathBuf),
    /// The file is not UTF-8.
    #[error("'{}' is not UTF-8: see line {line}", path.display())]
    NotText {
        /// The file that is not UTF-8.
        path: PathBuf,
        /// The line of the first invalid byte.
        line: usize,
    },
    /// A directory without scripts.
    #[error("there are no scripts in the directory '{}'", .0.display())]
    Empty(PathBuf),
    /// The `ConfigMap` does not exist, or none has these labels.
    #[error("{0}")]
    NoMap(String),
    /// A `ConfigMap` without scripts.
    #[error("there are no scripts in {0}")]
    EmptyMap(String),
    /// The script is binary data.
    #[error("{map}: '{key}' is in binaryData, so it is not a UTF-8 string")]
    Binary {
        /// The `ConfigMap`, as messages name it.
        map: String,
        /// The key in the map.
        key: String,
    },
}

impl Error {
    /// Returns the hint, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::NothingNamed => {
                "pass a script or a directory of scripts, such as path/to/handlers.lua"
            }
            Error::Missing(_) => "check the spelling and the current directory",
            Error::UnknownLanguage(path) if path.extension().is_some_and(|it| it == "py") => {
                "Python handlers need the Python framework Kopf; this program runs Lua and Rhai"
            }
            Error::UnknownLanguage(_) => "the extension selects the language: .lua or .rhai",
            Error::NotText { .. } => "save the file in UTF-8",
            Error::Empty(_) => {
                "add files *.lua or *.rhai directly to it; names that start with '.' or '_' are skipped"
            }
            Error::NoMap(_) => {
                "create it, or check the spelling: kubectl create configmap NAME -n NAMESPACE --from-file=DIRECTORY"
            }
            Error::EmptyMap(_) => {
                "add keys *.lua or *.rhai to its data; those that start with '.' or '_' are skipped"
            }
            Error::Binary { .. } => "save the file in UTF-8, and create the ConfigMap again",
            Error::Unreadable { .. } | Error::Special(_) | Error::TooLarge(_) => return None,
        })
    }
}

impl From<Error> for SourceProblem {
    fn from(error: Error) -> SourceProblem {
        let problem = SourceProblem::new(error.to_string());
        match error.hint() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}
