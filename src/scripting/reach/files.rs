//! Reads files that are granted. Symlinks are followed, and what they lead to must be granted as well.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::logic::grants::{Access, Denied, normal};

/// Larger directories are no configuration.
const NAMES_MAX: usize = 10_000;

/// The text of a file.
pub(super) fn read(access: &Access, path: &str, bytes_max: usize) -> Result<String, String> {
    let told = |error: io::Error| told(path, &error);
    let file = find(access, path)?.map_err(told)?;
    let kind = fs::metadata(&file).map_err(told)?;
    if kind.is_dir() {
        return Err(format!("{path} is a directory; files.list gives the names in it"));
    }
    if !kind.is_file() {
        // A pipe would never end.
        return Err(format!("{path} is no file"));
    }
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let mut source = fs::File::open(&file).map_err(told)?.take(most.saturating_add(1));
    source.read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() > bytes_max {
        return Err(format!(
            "{path} is larger than {bytes_max} bytes, the limit of settings.sandbox.string_size"
        ));
    }
    String::from_utf8(bytes).map_err(|_problem| format!("{path} is not UTF-8"))
}

/// The names in a directory, sorted, without the plumbing of volumes.
pub(super) fn list(access: &Access, path: &str) -> Result<Value, String> {
    let told = |error: io::Error| told(path, &error);
    let directory = find(access, path)?.map_err(told)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(told)? {
        let name = entry.map_err(told)?.file_name().to_string_lossy().into_owned();
        // `..data` of a mounted ConfigMap.
        if !name.starts_with("..") {
            names.push(name);
        }
        if names.len() > NAMES_MAX {
            return Err(format!("{path} has more than {NAMES_MAX} files in it"));
        }
    }
    names.sort();
    Ok(names.into())
}

/// Whether something is there.
pub(super) fn exists(access: &Access, path: &str) -> Result<bool, String> {
    match find(access, path)? {
        Ok(_) => Ok(true),
        Err(error) if is_absence(&error) => Ok(false),
        Err(error) => Err(told(path, &error)),
    }
}

/// The file that is meant, without symlinks. The outer error is a denial, the inner one of the system.
fn find(access: &Access, path: &str) -> Result<io::Result<PathBuf>, String> {
    let wanted = match std::path::absolute(path) {
        Ok(absolute) => normal(&absolute),
        Err(error) => return Ok(Err(error)),
    };
    // First the name: what is not granted is not looked at, so that nobody learns what is there.
    if !access.allows_read(&wanted) {
        return Err(Denied::read(&wanted).to_string());
    }
    let real = match wanted.canonicalize() {
        Ok(real) => real,
        Err(error) => return Ok(Err(error)),
    };
    let leads_within = |root: &Path| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if access.readable().any(leads_within) {
        return Ok(Ok(real));
    }
    Err(format!("{path} leads to {}: {}", real.display(), Denied::read(&real)))
}

fn told(path: &str, error: &io::Error) -> String {
    if is_absence(error) {
        return format!("there is no {path}");
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("the system does not let us read {path}");
    }
    format!("{path}: {error}")
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
