//! Finds and reads the scripts on the command line, and watches them.
//!
//! A directory contributes the scripts directly in it, ordered by name; anything that cannot be used is an error, never skipped
//! silently. Next: `scripting/`, which compiles the texts.
//!
//! [`Sources`] combines them: files (`files`, with the pure `watch_targets`, `settling` and `mounts`), and `ConfigMap`s of the API
//! (`maps`). `reload/` asks it for changes.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::scripting::{Modules, Source};

mod files;
mod fingerprint;
mod fs_events;
mod live;
mod maps;
mod mounts;
mod problem;
pub mod reload;
mod settling;
#[cfg(test)]
mod tests;
mod watch_targets;
mod watches;

pub use self::{
    files::Files,
    fingerprint::{Difference, Fingerprint},
    live::{Attempt, Snapshot, Sources},
    maps::{MapOption, Maps},
    problem::{Notice, Problem},
};

/// The default locations of scripts, in this order.
pub const DEFAULT_PATHS: [&str; 3] = ["handlers.lua", "handlers.rhai", "handlers"];

/// Maximum size of a script in bytes: a dump that is named by mistake must not fill the memory.
const SCRIPT_BYTES_MAX: u64 = 8 << 20;

/// Why a path does not provide scripts.
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
    #[error("'{}' has more than {} MiB: too much for a script", .0.display(), SCRIPT_BYTES_MAX >> 20)]
    TooLarge(PathBuf),
    /// The file is not UTF-8.
    #[error("'{}' is not UTF-8: see line {line}", path.display())]
    NotText {
        /// The file.
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
    #[error("{map}: '{key}' is in binaryData, so it is not text")]
    Binary {
        /// The `ConfigMap`.
        map: String,
        /// The key in the map.
        key: String,
    },
}

impl Error {
    /// Returns what to do next, if known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::NothingNamed => {
                "pass a script or a directory of scripts: kopf run path/to/handlers.lua"
            }
            Error::Missing(_) => "check the spelling and the current directory",
            Error::UnknownLanguage(path) if path.extension().is_some_and(|it| it == "py") => {
                "Python handlers need Python's Kopf; this program runs Lua and Rhai"
            }
            Error::UnknownLanguage(_) => "the extension selects the language: .lua or .rhai",
            Error::NotText { .. } => "save the file in UTF-8",
            Error::Empty(_) => {
                "scripts are the files *.lua and *.rhai directly in it; names that start with '.' or '_' are skipped"
            }
            Error::NoMap(_) => {
                "create it, or check the spelling: kubectl create configmap NAME -n NAMESPACE --from-file=DIRECTORY"
            }
            Error::EmptyMap(_) => {
                "scripts are the keys *.lua and *.rhai of its data; those that start with '.' or '_' are skipped"
            }
            Error::Binary { .. } => {
                "the file is not UTF-8: save it in UTF-8, and create the ConfigMap again"
            }
            Error::Unreadable { .. } | Error::Special(_) | Error::TooLarge(_) => return None,
        })
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let problem = Problem::new(error.to_string());
        match error.hint() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}

/// Reads the scripts at these paths, in their order; without paths, at the default locations under `here`.
pub fn read_all(paths: &[PathBuf], here: &Path) -> Result<Vec<Source>, Error> {
    read_set(&places(paths, here)?, here)
}

/// Returns the paths of scripts: these, or the first default location that exists.
fn places(paths: &[PathBuf], here: &Path) -> Result<Vec<PathBuf>, Error> {
    if paths.is_empty() {
        let found = DEFAULT_PATHS.iter().find(|it| here.join(it).exists());
        Ok(vec![PathBuf::from(found.ok_or(Error::NothingNamed)?)])
    } else {
        Ok(paths.to_vec())
    }
}

/// Reads the scripts at these paths. Files of one volume are read from the same version of it.
fn read_set(paths: &[PathBuf], here: &Path) -> Result<Vec<Source>, Error> {
    let mut volumes = Volumes::default();
    let mut sources = Vec::new();
    for path in paths {
        for name in expand(path, here)? {
            sources.push(read(name, here, &mut volumes)?);
        }
    }
    Ok(sources)
}

/// Volumes of `ConfigMap`s, in the version that was seen first: the target of `..data`, by directory.
#[derive(Default)]
struct Volumes(BTreeMap<PathBuf, Option<PathBuf>>);

impl Volumes {
    /// Returns the file to read for a path. Only a link into a volume is resolved.
    fn resolve(&mut self, place: &Path) -> PathBuf {
        let inside =
            || fs::read_link(place).ok()?.strip_prefix("..data").ok().map(Path::to_path_buf);
        let Some((directory, inside)) = place.parent().zip(inside()) else { return place.into() };
        let resolve = || directory.join("..data").canonicalize().ok();
        let version = self.0.entry(directory.into()).or_insert_with(resolve);
        version.as_ref().map_or_else(|| place.into(), |it| it.join(inside))
    }
}

/// Returns the script files at one path, named as the user would name them.
fn expand(path: &Path, here: &Path) -> Result<Vec<PathBuf>, Error> {
    let place = here.join(path);
    let kind = fs::metadata(&place).map_err(|source| {
        if source.kind() == io::ErrorKind::NotFound {
            Error::Missing(path.into())
        } else {
            Error::Unreadable { path: path.into(), source }
        }
    })?;
    if !kind.is_dir() {
        return if !kind.is_file() {
            Err(Error::Special(path.into()))
        } else if is_script(path) {
            Ok(vec![path.into()])
        } else {
            Err(Error::UnknownLanguage(path.into()))
        };
    }
    let unreadable = |source| Error::Unreadable { path: path.into(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(&place).map_err(unreadable)? {
        let name = PathBuf::from(entry.map_err(unreadable)?.file_name());
        // The type of the entry itself does not matter: in a volume of a `ConfigMap`, every file is a symlink.
        if is_script(&name) && !is_hidden(&name) && !place.join(&name).is_dir() {
            found.push(path.join(name));
        }
    }
    if found.is_empty() {
        return Err(Error::Empty(path.into()));
    }
    found.sort();
    Ok(found)
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lua" || it == "rhai")
}

/// `_lib.lua` is a module for others; `..data` belongs to the volume of a `ConfigMap`.
fn is_hidden(name: &Path) -> bool {
    let first = name.as_os_str().as_encoded_bytes().first();
    first.is_some_and(|it| matches!(it, b'.' | b'_'))
}

fn read(path: PathBuf, here: &Path, volumes: &mut Volumes) -> Result<Source, Error> {
    let place = here.join(&path);
    // Modules first: if a volume is replaced now, the script is at most newer than its modules, and is then read again.
    let modules = Modules::beside(&place);
    let place = volumes.resolve(&place);
    let bytes = match fs::metadata(&place) {
        Ok(kind) if kind.len() > SCRIPT_BYTES_MAX => return Err(Error::TooLarge(path)),
        Ok(_) => fs::read(&place),
        Err(source) => Err(source),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(source) => return Err(Error::Unreadable { path, source }),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name: path.display().to_string(), text, modules }),
        Err(problem) => {
            let good = problem.as_bytes().iter().take(problem.utf8_error().valid_up_to());
            let line = 1 + good.filter(|it| **it == b'\n').count();
            Err(Error::NotText { path, line })
        }
    }
}
