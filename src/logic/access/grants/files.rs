//! Rules for files and directories.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

/// A file, or a directory with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule(PathBuf);

impl PathRule {
    /// Accepts any path. A relative one is below `base`.
    pub(super) fn new(text: &str, base: &Path) -> Self {
        PathRule(normal(&base.join(text)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether the rule covers a path. Compares whole names: `/etc/app` is not a prefix of `/etc/apples`.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.0.is_absolute() && normal(path).starts_with(&self.0)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Returns the path without `.` and `..`, resolved lexically. The root has no parent.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                let above =
                    matches!(normal.components().next_back(), None | Some(Component::ParentDir));
                // A relative path may begin above its base.
                if above {
                    normal.push(part);
                } else {
                    normal.pop();
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}
