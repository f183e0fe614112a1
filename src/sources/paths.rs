//! The scripts at paths: which files they are, and their content.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::error::Error;
use crate::scripting::{Modules, SCRIPT_BYTES_MAX, Source};

/// The default locations of scripts, in this order.
pub const DEFAULT_PATHS: [&str; 3] = ["handlers.lua", "handlers.rhai", "handlers"];

/// Reads the scripts at these paths, in their order; without paths, at the default locations under `here`.
pub fn read_all(paths: &[PathBuf], here: &Path) -> Result<Vec<Source>, Error> {
    read_set(&places(paths, here)?, here)
}

/// Returns the paths of scripts: these, or the first default location that exists.
pub(super) fn places(paths: &[PathBuf], here: &Path) -> Result<Vec<PathBuf>, Error> {
    if paths.is_empty() {
        let found = DEFAULT_PATHS.iter().find(|it| here.join(it).exists());
        Ok(vec![PathBuf::from(found.ok_or(Error::NothingNamed)?)])
    } else {
        Ok(paths.to_vec())
    }
}

/// Reads the scripts at these paths. Files of one volume are read from the same version of it.
pub(super) fn read_set(paths: &[PathBuf], here: &Path) -> Result<Vec<Source>, Error> {
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

pub(super) fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lua" || it == "rhai")
}

/// Returns whether a name excludes a script: `_lib.lua` is a module for others; `..data` belongs to the volume of a `ConfigMap`.
pub(super) fn is_hidden(name: &Path) -> bool {
    let first = name.as_os_str().as_encoded_bytes().first();
    first.is_some_and(|it| matches!(it, b'.' | b'_'))
}

fn read(path: PathBuf, here: &Path, volumes: &mut Volumes) -> Result<Source, Error> {
    let place = here.join(&path);
    // Modules first: if a volume is replaced now, the script is at most newer than its modules, and is then read again.
    let modules = Modules::beside(&place);
    let place = volumes.resolve(&place);
    let bytes = match fs::metadata(&place) {
        // A dump that is named by mistake must not fill the memory.
        Ok(kind) if kind.len() > SCRIPT_BYTES_MAX as u64 => return Err(Error::TooLarge(path)),
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
