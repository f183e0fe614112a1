//! The files of `--crd` and `--apply`: applied to the server at the start, and again after each change.
//!
//! It watches directories rather than files, because editors write a new file and rename it over the old one. A notification only
//! indicates that something has changed; then every file is read, and those with new content are applied.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{sync::Notify, time};
use tokio_util::sync::CancellationToken;

use super::{
    apply::{Api, AppliedObject, ApplyResult},
    documents::{self, DEFINITION, FileObject, text},
};
use crate::cli::report::Report;
use crate::sorted;

/// Editors make several changes for one save: files are read after this much quiet time.
const SETTLING: Duration = Duration::from_millis(100);

/// The files, and their contents when they were last read.
#[derive(Debug)]
pub(in crate::cli) struct ManifestFiles {
    /// As on the command line.
    paths: Vec<PathBuf>,
    /// The contents that were applied, or at least attempted.
    texts: BTreeMap<PathBuf, String>,
    /// Files without objects at the start.
    empty: Vec<PathBuf>,
    /// The last message about each path.
    logged: BTreeMap<PathBuf, String>,
    /// Objects at the start: CRDs first, then namespaces, then objects that need them.
    documents: Vec<FileObject>,
}

impl ManifestFiles {
    /// Reads all files once.
    pub(in crate::cli) fn read(
        definitions: &[PathBuf],
        objects: &[PathBuf],
    ) -> Result<Self, Report> {
        let mut files = ManifestFiles {
            paths: definitions.iter().chain(objects).cloned().collect(),
            texts: BTreeMap::new(),
            empty: Vec::new(),
            logged: BTreeMap::new(),
            documents: Vec::new(),
        };
        for path in definitions {
            let before = files.documents.len();
            files.take(path)?;
            if let Some(empty) = files.empty.pop() {
                return Err(documents::Error::NoDocuments(empty).into());
            }
            let is_other = |it: &&FileObject| text(&it.object, "/kind") != DEFINITION;
            if let Some(other) = files.documents.iter().skip(before).find(is_other) {
                let kind = text(&other.object, "/kind");
                let problem = format!("{}: expected a {DEFINITION}, got a {kind}", other.place);
                return Err(Report::failure(problem).with_hint("pass objects with --apply"));
            }
        }
        for path in objects {
            files.take(path)?;
        }
        sorted::sort_by_key(&mut files.documents, rank);
        Ok(files)
    }

    fn take(&mut self, path: &Path) -> Result<(), documents::Error> {
        for file in documents::files(path)? {
            let text = documents::read(&file)?;
            match documents::parse(&file, &text) {
                Ok(found) => self.documents.extend(found),
                Err(documents::Error::NoDocuments(file)) => self.empty.push(file),
                Err(problem) => return Err(problem),
            }
            self.texts.insert(file, text);
        }
        Ok(())
    }

    /// Warns about files without objects, such as templates that consist only of comments.
    pub(super) fn warn_of_empty(&self) {
        for file in &self.empty {
            let problem = documents::Error::NoDocuments(file.clone());
            tracing::warn!(target: "kopf.dev", "{problem}: it is ignored.");
        }
    }

    /// Returns the objects of all files.
    pub(in crate::cli) fn into_objects(self) -> Vec<serde_json::Value> {
        self.documents.into_iter().map(|it| it.object).collect()
    }

    /// Returns the objects of all files at the start.
    pub(in crate::cli) fn documents(&self) -> &[FileObject] {
        &self.documents
    }

    /// Returns the CRDs among them, then all others.
    pub(super) fn by_rank(&self) -> (&[FileObject], &[FileObject]) {
        let definitions = self.documents.partition_point(|it| rank(it) == 0);
        self.documents.split_at_checked(definitions).unwrap_or_default()
    }

    /// Applies changes until `stop`. Errors in a file do not end this: its author will change it again.
    pub(super) async fn follow(mut self, api: Api, stop: CancellationToken) {
        self.documents = Vec::new();
        if self.paths.is_empty() {
            return;
        }
        let changed = Arc::new(Notify::new());
        let mut watcher = match watcher(Arc::clone(&changed)) {
            Ok(watcher) => watcher,
            Err(problem) => return blind(&problem),
        };
        self.watch(&mut watcher);
        // Changes between the start and now.
        self.apply_changes(&api).await;
        loop {
            tokio::select! {
                biased; // the stop signal first
                () = stop.cancelled() => return,
                () = changed.notified() => {}
            }
            while time::timeout(SETTLING, changed.notified()).await.is_ok() {}
            self.apply_changes(&api).await;
            // A directory that was replaced needs a new watch.
            self.watch(&mut watcher);
        }
    }

    fn watch(&mut self, watcher: &mut RecommendedWatcher) {
        let mut directories = BTreeSet::new();
        for path in &self.paths {
            directories.insert(directory(path));
            // The target of a link is changed elsewhere.
            directories.extend(path.canonicalize().ok().map(|it| directory(&it)));
        }
        for directory in directories {
            if let Err(problem) = watcher.watch(&directory, RecursiveMode::NonRecursive) {
                let text =
                    format!("Changes in '{}' are not detected: {problem}", directory.display());
                self.log_once(&directory, text);
            }
        }
    }

    /// Applies the files whose content has changed.
    async fn apply_changes(&mut self, api: &Api) {
        let (mut found, mut changed) = (BTreeSet::new(), Vec::new());
        for path in self.paths.clone() {
            let files = match documents::files(&path) {
                Ok(files) => files,
                Err(problem) => {
                    self.log_error(&path, &problem);
                    continue;
                }
            };
            for file in files {
                match self.changed(&file) {
                    Ok(documents) => changed.extend(documents),
                    Err(problem) => self.log_error(&file, &problem),
                }
                found.insert(file);
            }
        }
        for file in self.texts.keys().filter(|it| !found.contains(*it)) {
            tracing::info!(target: "kopf.dev", "{} was deleted; its objects are kept.", file.display());
        }
        self.texts.retain(|file, _| found.contains(file));
        sorted::sort_by_key(&mut changed, rank);
        for document in &changed {
            match api.apply(document).await {
                Ok(AppliedObject { change: ApplyResult::Unchanged, .. }) => {}
                Ok(applied) => log(&applied, document),
                Err(problem) => tracing::error!(target: "kopf.dev", "{problem}"),
            }
        }
    }

    /// Returns the objects of a file, if its content has changed.
    fn changed(&mut self, file: &Path) -> Result<Vec<FileObject>, documents::Error> {
        let text = documents::read(file)?;
        if self.texts.get(file) == Some(&text) {
            return Ok(Vec::new());
        }
        let parsed = documents::parse(file, &text);
        // Stored even if the content has errors, so that each error is logged once.
        self.texts.insert(file.into(), text);
        self.logged.remove(file);
        parsed
    }

    fn log_error(&mut self, path: &Path, problem: &documents::Error) {
        // Editors replace files, so a missing one is not an error; `apply_changes` logs deleted files.
        if !problem.is_missing() {
            self.log_once(path, problem.to_string());
        }
    }

    /// Logs a message about a path, unless it was the last one about this path.
    fn log_once(&mut self, path: &Path, text: String) {
        if self.logged.get(path) != Some(&text) {
            tracing::error!(target: "kopf.dev", "{text}");
            self.logged.insert(path.into(), text);
        }
    }
}

/// Logs that an object was applied.
pub(super) fn log(applied: &AppliedObject, document: &FileObject) {
    let AppliedObject { name, change } = applied;
    tracing::info!(target: "kopf.dev", "{name} {} ({})", change.word(), document.place);
}

fn blind(problem: &notify::Error) {
    tracing::error!(target: "kopf.dev", "Changes of files are not detected: {problem}");
}

fn watcher(changed: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reads by this process are events, too, and must not trigger the next read.
        let is_reading = event.is_ok_and(|it| match it.kind {
            EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => false,
        });
        if !is_reading {
            changed.notify_one();
        }
    })
}

/// Returns the directory to watch for a path.
fn directory(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.into();
    }
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).into()
}

/// Returns the rank of an object: CRDs come before namespaces, and both before the objects that need them.
fn rank(document: &FileObject) -> u8 {
    match text(&document.object, "/kind") {
        DEFINITION => 0,
        "Namespace" => 1,
        _ => 2,
    }
}
