//! Watches the relevant directories, as they are created, removed and replaced.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{
    fs_events::FsEvents,
    watch_targets::{PathKind, WatchTargets},
};
use crate::sorted::CollectSorted as _;

/// The targets can change while paths are resolved; then they are resolved again, at most this many times: later changes are
/// noticed.
const ROUNDS_MAX: usize = 3;

/// Watches directories. All methods may block, as file systems do.
pub(super) struct Watches {
    fs_events: FsEvents,
    /// `None` if the system does not provide one.
    watcher: Option<RecommendedWatcher>,
    /// The directories, with their identities when the watch began.
    watched: BTreeMap<PathBuf, DirectoryIdentity>,
}

/// Device and inode: a directory that was replaced has another identity under the same name.
type DirectoryIdentity = (u64, u64);

impl Watches {
    /// Creates watches without any directory.
    pub(super) fn new(fs_events: FsEvents) -> Self {
        Watches { fs_events, watcher: None, watched: BTreeMap::new() }
    }

    /// Watches exactly the directories of these paths, which are absolute. The error names one that cannot be watched.
    pub(super) fn cover(&mut self, paths: &BTreeSet<PathBuf>) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let targets = WatchTargets::resolving(paths.iter().map(PathBuf::as_path), &inspect);
            let wanted: BTreeMap<_, _> = targets
                .0
                .keys()
                .filter_map(|path| Some((path.clone(), identity(path)?)))
                .collect_map();
            if targets == self.fs_events.targets() && wanted == self.watched {
                return Ok(());
            }
            // Before the watches begin: their first events count.
            self.fs_events.set_targets(targets);
            self.change(wanted)?;
        }
        Ok(())
    }

    fn change(&mut self, wanted: BTreeMap<PathBuf, DirectoryIdentity>) -> Result<(), String> {
        if self.watcher.is_none() {
            let fs_events = self.fs_events.clone();
            let made = notify::recommended_watcher(move |event| fs_events.add(event));
            self.watched.clear();
            self.watcher = Some(made.map_err(|it| reason(&it))?);
        }
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        self.watched.retain(|path, identity| {
            let stays = wanted.get(path) == Some(identity);
            if !stays {
                // The watch of a removed directory is gone, too.
                let _gone = watcher.unwatch(path).is_err();
            }
            stays
        });
        let mut result = Ok(());
        for (path, identity) in wanted {
            if self.watched.contains_key(&path) {
                continue;
            }
            match watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path, identity);
                }
                // It was removed a moment ago.
                Err(problem) if matches!(problem.kind, ErrorKind::PathNotFound) => {}
                // The others are watched nevertheless.
                Err(problem) => {
                    result = Err(format!("'{}': {}", path.display(), reason(&problem)));
                }
            }
        }
        result
    }
}

fn inspect(path: &Path) -> PathKind {
    let Ok(kind) = fs::symlink_metadata(path) else { return PathKind::Nothing };
    if kind.is_dir() {
        PathKind::Directory
    } else if kind.is_symlink() {
        fs::read_link(path).map_or(PathKind::Nothing, PathKind::Link)
    } else {
        PathKind::File
    }
}

fn identity(path: &Path) -> Option<DirectoryIdentity> {
    let kind = fs::metadata(path).ok()?;
    Some((kind.dev(), kind.ino()))
}

/// Returns the reason of the system, and the limit that was reached.
fn reason(problem: &notify::Error) -> String {
    match &problem.kind {
        ErrorKind::MaxFilesWatch => {
            "the limit of file watches is reached (fs.inotify.max_user_watches)".to_owned()
        }
        // EMFILE: all instances of this user are in use.
        ErrorKind::Io(error) if error.raw_os_error() == Some(24) => {
            "the limit of inotify instances is reached (fs.inotify.max_user_instances)".to_owned()
        }
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => problem.to_string(),
    }
}
