//! Reads the files of `--crd` and `--apply`: YAML with any number of documents, or JSON.
//!
//! Every document is extracted before it is parsed, so that each error has its line in the file.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::cli::report::Report;

/// Maximum size of a file in bytes: the server accepts objects of 3 MiB, and a dump that is named by mistake must not fill the
/// memory.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The namespace of objects without one, and of clients that set none.
pub(in crate::cli) const NAMESPACE: &str = "default";

/// The kind of CRDs.
pub(in crate::cli) const DEFINITION: &str = "CustomResourceDefinition";

/// One object of a file.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct FileObject {
    /// Its start, as `file:line`.
    pub(in crate::cli) place: String,
    /// Has a kind, a version and a name.
    pub(in crate::cli) object: Value,
}

/// The reason why a file cannot be read as objects.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Error {
    #[error("there is no file or directory '{}'", .0.display())]
    Missing(PathBuf),
    #[error("cannot read '{}': {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("'{}' is neither a file nor a directory", .0.display())]
    Special(PathBuf),
    #[error("'{}' has more than {} MiB: too much for objects", .0.display(), FILE_BYTES_MAX >> 20)]
    TooLarge(PathBuf),
    #[error("'{}' is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("there are no files *.yaml, *.yml or *.json in the directory '{}'", .0.display())]
    Empty(PathBuf),
    #[error("{place}: invalid YAML: {reason}")]
    NotYaml { place: String, reason: String },
    #[error("{place}: invalid JSON: {reason}")]
    NotJson { place: String, reason: String },
    #[error("{place}: not a Kubernetes object: {reason}")]
    NoObject { place: String, reason: &'static str },
    #[error("'{}' contains no objects", .0.display())]
    NoDocuments(PathBuf),
}

impl Error {
    /// Returns what to do next, if known.
    pub(in crate::cli) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::Missing(_) => "check the spelling and the current directory",
            Error::NotText(_) => "save the file in UTF-8",
            Error::NoObject { .. } => "an object needs at least apiVersion, kind and metadata.name",
            Error::NotYaml { .. }
            | Error::NotJson { .. }
            | Error::Unreadable { .. }
            | Error::Special(_)
            | Error::TooLarge(_)
            | Error::Empty(_)
            | Error::NoDocuments(_) => return None,
        })
    }

    /// Returns whether the file does not exist, perhaps only for a moment.
    pub(in crate::cli) fn is_missing(&self) -> bool {
        matches!(self, Error::Missing(_))
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Report {
        let report = Report::failure(error.to_string());
        match error.hint() {
            Some(hint) => report.with_hint(hint),
            None => report,
        }
    }
}

/// Returns the objects of all files at one path.
pub(in crate::cli) fn of(path: &Path) -> Result<Vec<FileObject>, Error> {
    let mut documents = Vec::new();
    for file in files(path)? {
        documents.extend(parse(&file, &read(&file)?)?);
    }
    Ok(documents)
}

/// Returns the files at one path, named as the user would name them; those of a directory are ordered by name.
pub(in crate::cli) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let kind = fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if kind.is_file() {
        return Ok(vec![path.into()]);
    }
    if !kind.is_dir() {
        return Err(Error::Special(path.into()));
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(|source| unreadable(path, source))? {
        let name = PathBuf::from(entry.map_err(|source| unreadable(path, source))?.file_name());
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        if is_data(&name) && !is_hidden && path.join(&name).is_file() {
            found.push(path.join(name));
        }
    }
    if found.is_empty() {
        return Err(Error::Empty(path.into()));
    }
    found.sort();
    Ok(found)
}

fn is_data(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json")
}

/// Returns the content of a file.
pub(in crate::cli) fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |source| unreadable(path, source);
    if fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(Error::TooLarge(path.into()));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_problem| Error::NotText(path.into()))
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotFound {
        Error::Missing(path.into())
    } else {
        Error::Unreadable { path: path.into(), source }
    }
}

/// Returns the objects in `text`; errors call it `path`.
pub(in crate::cli) fn parse(path: &Path, text: &str) -> Result<Vec<FileObject>, Error> {
    let place = |line: usize| format!("{}:{line}", path.display());
    let mut documents = Vec::new();
    if path.extension().is_some_and(|it| it == "json") {
        let object = serde_json::from_str(text).map_err(|problem| Error::NotJson {
            place: place(problem.line().max(1)),
            reason: without_place(&problem.to_string()),
        })?;
        take(&mut documents, place(1), object)?;
    } else {
        for (start, text) in split(text) {
            let object = serde_saphyr::from_str(text).map_err(|problem| {
                let (line, reason) = location_and_message(&problem);
                Error::NotYaml { place: place(start + line - 1), reason }
            })?;
            let first = text.lines().take_while(|it| !is_content(it)).count();
            take(&mut documents, place(start + first), object)?;
        }
    }
    if documents.is_empty() { Err(Error::NoDocuments(path.into())) } else { Ok(documents) }
}

/// Returns the documents of a YAML file, each with the number of its first line. A line that starts with `---` always separates
/// documents.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut borders = vec![(1, 0)];
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let after = line.strip_prefix("---");
        if after.is_some_and(|it| it.is_empty() || it.starts_with(char::is_whitespace)) {
            borders.push((index + 1, offset));
        }
        offset += line.len();
    }
    let ends: Vec<usize> =
        borders.iter().skip(1).map(|(_, offset)| *offset).chain([text.len()]).collect();
    let pieces = borders.into_iter().zip(ends);
    let pieces = pieces.filter_map(move |((line, start), end)| Some((line, text.get(start..end)?)));
    pieces.filter(|(_, piece)| piece.lines().any(is_content))
}

/// Returns whether a line has more than a comment or a document separator.
fn is_content(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}');
    let line = line.strip_prefix("---").unwrap_or(line).trim();
    !line.is_empty() && !line.starts_with('#') && line != "..."
}

/// Returns the line of an error within its document, and its message in one line.
fn location_and_message(problem: &serde_saphyr::Error) -> (usize, String) {
    let line = problem.location().map_or(1, |it| it.line());
    let text = problem.without_snippet().to_string();
    (usize::try_from(line).unwrap_or(1).max(1), without_place(&text))
}

/// Returns the message of a parser without its location, which counts from the start of the document, not of the file, and without advice
/// for programmers.
fn without_place(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let text = text.split(" at line ").next().unwrap_or_default();
    let text = text.split("; use Option<").next().unwrap_or_default();
    let text = text.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// Adds an object, or the objects of a list.
fn take(documents: &mut Vec<FileObject>, place: String, mut object: Value) -> Result<(), Error> {
    if object.is_null() {
        return Ok(());
    }
    let is_list = text(&object, "/kind").ends_with("List") && object.get("items").is_some();
    if is_list && let Some(Value::Array(items)) = object.get_mut("items").map(Value::take) {
        // Kubernetes does not support nested lists either.
        for item in items {
            documents.push(checked(place.clone(), item)?);
        }
        return Ok(());
    }
    documents.push(checked(place, object)?);
    Ok(())
}

fn checked(place: String, object: Value) -> Result<FileObject, Error> {
    let reason = if !object.is_object() {
        "it is not a mapping"
    } else if text(&object, "/apiVersion").is_empty() {
        "it has no apiVersion"
    } else if text(&object, "/kind").is_empty() {
        "it has no kind"
    } else if text(&object, "/metadata/name").is_empty() {
        "it has no metadata.name"
    } else {
        return Ok(FileObject { place, object });
    };
    Err(Error::NoObject { place, reason })
}

/// Returns a string inside an object; empty if absent.
pub(in crate::cli) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
