//! `files`: reads granted files. Symlinks are followed, and their targets must be granted as well.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Call, tree, yaml};
use crate::logic::access::grants::{Access, Denied, normal};
use crate::scripting::functions::{
    outcome::{Datum, Failure, Outcome},
    types::{Body, Function, Library, Parameter, Type, required},
};

pub(super) const LIBRARY: Library = Library {
    name: "files",
    doc: "Reads files and directories that are granted with `--allow-read`.",
    functions: &[
        Function {
            name: "read",
            doc: "Reads a UTF-8 file.",
            parameters: PATH,
            options: &[],
            returns: Type::Text,
            body: Body::Waiting(|call| Box::pin(call.elsewhere(|it| Ok(text(it)?.into())))),
        },
        Function {
            name: "read_json",
            doc: "Reads and parses a JSON file.",
            parameters: PATH,
            options: &[],
            returns: Type::Any,
            body: Body::Waiting(|call| Box::pin(call.elsewhere(read_json))),
        },
        Function {
            name: "read_yaml",
            doc: "Reads and parses a YAML file.",
            parameters: PATH,
            options: &[],
            returns: Type::Any,
            body: Body::Waiting(|call| Box::pin(call.elsewhere(read_yaml))),
        },
        Function {
            name: "list",
            doc: "Returns the sorted names in a directory; an error if there are more than 10000.",
            parameters: PATH,
            options: &[],
            returns: Type::List,
            body: Body::Waiting(|call| {
                Box::pin(call.elsewhere(|it| done(list(&it.surroundings.access, it.text("path")))))
            }),
        },
        Function {
            name: "exists",
            doc: "Returns whether a file or a directory exists.",
            parameters: PATH,
            options: &[],
            returns: Type::Boolean,
            body: Body::Waiting(|call| {
                Box::pin(
                    call.elsewhere(|it| done(exists(&it.surroundings.access, it.text("path")))),
                )
            }),
        },
    ],
};

const PATH: &[Parameter] = &[required(
    "path",
    Type::Name,
    "An absolute path, or a path relative to the working directory of `kopf`.",
)];

/// Larger directories are not configuration.
const NAMES_MAX: usize = 10_000;

fn done(result: Result<impl Into<Value>, String>) -> Outcome {
    Ok(Datum::Json(result?.into()))
}

fn text(call: &Call) -> Result<Value, Failure> {
    let limit = call.surroundings.limits.string_size;
    Ok(read(&call.surroundings.access, call.text("path"), limit)?.into())
}

fn read_json(call: &Call) -> Outcome {
    let (path, text) = (call.text("path"), text(call)?);
    let read = tree::json(text.as_str().unwrap_or_default());
    done(read.map_err(|it| format!("{path} is {it}")))
}

fn read_yaml(call: &Call) -> Outcome {
    let (path, text) = (call.text("path"), text(call)?);
    let read = yaml::read(text.as_str().unwrap_or_default());
    done(read.map_err(|it| format!("{path} is {it}")))
}

/// Returns the content of a file.
pub(super) fn read(access: &Access, path: &str, bytes_max: usize) -> Result<String, String> {
    let failed = |error: io::Error| io_message(path, &error);
    let file = find(access, path)?.map_err(failed)?;
    let kind = fs::metadata(&file).map_err(failed)?;
    if kind.is_dir() {
        return Err(format!("{path} is a directory; use files.list"));
    }
    if !kind.is_file() {
        // Reading a pipe would never end.
        return Err(format!("{path} is not a regular file"));
    }
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let mut source = fs::File::open(&file).map_err(failed)?.take(most.saturating_add(1));
    source.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > bytes_max {
        return Err(format!(
            "{path} is larger than {bytes_max} bytes, the limit of settings.sandbox.string_size"
        ));
    }
    String::from_utf8(bytes).map_err(|_problem| format!("{path} is not UTF-8"))
}

/// Returns the names in a directory, sorted, without the internal links of volumes.
fn list(access: &Access, path: &str) -> Result<Value, String> {
    let failed = |error: io::Error| io_message(path, &error);
    let directory = find(access, path)?.map_err(failed)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // `..data` of a mounted ConfigMap.
        if !name.starts_with("..") {
            names.push(name);
        }
        if names.len() > NAMES_MAX {
            return Err(format!("{path} contains more than {NAMES_MAX} files"));
        }
    }
    names.sort();
    Ok(names.into())
}

/// Returns whether a path exists.
fn exists(access: &Access, path: &str) -> Result<bool, String> {
    match find(access, path)? {
        Ok(_) => Ok(true),
        Err(error) if is_absence(&error) => Ok(false),
        Err(error) => Err(io_message(path, &error)),
    }
}

/// Returns the real file, without symlinks. The outer error is a denial, the inner one comes from the system.
fn find(access: &Access, path: &str) -> Result<io::Result<PathBuf>, String> {
    let wanted = match std::path::absolute(path) {
        Ok(absolute) => normal(&absolute),
        Err(error) => return Ok(Err(error)),
    };
    // The name is checked first: a path that is not granted is not accessed, so its existence is not revealed.
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
    Err(format!("{path} resolves to {}: {}", real.display(), Denied::read(&real)))
}

fn io_message(path: &str, error: &io::Error) -> String {
    if is_absence(error) {
        return format!("{path} does not exist");
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("{path}: permission denied");
    }
    format!("{path}: {error}")
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
