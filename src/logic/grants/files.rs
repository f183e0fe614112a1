//! Files and directories with all that is in them.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

/// A file, or a directory with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule(PathBuf);

impl PathRule {
    /// Any path is one. A relative one is below `base`.
    pub(super) fn new(text: &str, base: &Path) -> Self {
        PathRule(normal(&base.join(text)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// By whole names: `/etc/app` is not the beginning of `/etc/apples`.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.0.is_absolute() && normal(path).starts_with(&self.0)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Without `.` and `..`, as far as the text tells. There is nothing above the root.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                let above =
                    matches!(normal.components().next_back(), None | Some(Component::ParentDir));
                // A relative path may begin above where it starts.
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
