//! Determines the directories to watch, so that every change that affects a file is noticed.
//!
//! Watching a file is not enough: editors replace it, and the watch stays on the old file. So this module resolves each path as the
//! system does, and records each point where the result could change: symlinks (the volume of a `ConfigMap` consists of them), the
//! file itself, and the place of a missing file. All directories are real, without links in their paths.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};

#[cfg(test)]
mod tests;

/// The same limit as that of the system.
const LINKS_MAX: usize = 40;

/// The type of a path, without following links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    /// The path does not exist, or is not visible.
    Nothing,
    /// A directory.
    Directory,
    /// A symlink, with its target.
    Link(PathBuf),
    /// A file, or anything else that exists.
    File,
}

/// Returns the type of a path.
pub(super) type Inspect<'a> = &'a dyn Fn(&Path) -> PathKind;

/// The relevant entries of one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryEntries {
    /// All scripts, including new ones.
    pub(super) scripts: bool,
    /// The entries with these names.
    pub(super) names: BTreeSet<OsString>,
}

/// The directories to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchTargets(pub(super) BTreeMap<PathBuf, DirectoryEntries>);

impl WatchTargets {
    /// Returns the directories that are involved in resolving these paths, which are absolute.
    pub(super) fn resolving<'a>(
        paths: impl IntoIterator<Item = &'a Path>,
        inspect: Inspect<'_>,
    ) -> Self {
        let mut targets = WatchTargets::default();
        for path in paths {
            targets.walk(path, inspect);
        }
        targets
    }

    /// Returns whether a change at this path matters.
    pub(super) fn concern(&self, path: &Path) -> bool {
        if self.0.contains_key(path) {
            return true; // the directory itself was removed or moved
        }
        let Some((directory, name)) = path.parent().zip(path.file_name()) else { return false };
        let Some(entries) = self.0.get(directory) else { return false };
        entries.names.contains(name) || entries.scripts && is_script(name)
    }

    fn walk(&mut self, path: &Path, inspect: Inspect<'_>) {
        let mut here = PathBuf::from("/");
        let mut ahead = parts(path);
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&name);
            match inspect(&next) {
                PathKind::Directory if ahead.is_empty() => {
                    self.note(&here, name);
                    self.0.entry(next).or_default().scripts = true;
                    return;
                }
                PathKind::Directory => here = next,
                PathKind::Nothing | PathKind::File => return self.note(&here, name),
                PathKind::Link(target) => {
                    self.note(&here, name);
                    links += 1;
                    if links > LINKS_MAX {
                        return;
                    }
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    let mut further = parts(&target);
                    further.append(&mut ahead);
                    ahead = further;
                }
            }
        }
        // A link to the root, or to a parent: also a directory.
        self.0.entry(here).or_default().scripts = true;
    }

    fn note(&mut self, directory: &Path, name: OsString) {
        self.0.entry(directory.to_owned()).or_default().names.insert(name);
    }
}

/// Returns whether a name is that of a script or a module.
fn is_script(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|it| it == "lua" || it == "rhai")
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}
