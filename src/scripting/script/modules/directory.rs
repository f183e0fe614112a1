//! The directory that modules come from, and the only one.
//!
//! Symlinks are followed and their target is checked, because a ConfigMap volume consists of links within itself: `lib.lua →
//! ..data/lib.lua`, `..data → ..2026_11_21`. The kubelet replaces the content of such a volume by replacing `..data`. So the target
//! of `..data` is kept while a script is loaded, and modules are looked up there.

use std::{
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use parking_lot::Mutex;

use super::{Digest, MODULE_BYTES_MAX, UnreadModule};

/// The link of a volume to its current content.
const DATA: &str = "..data";

#[derive(Debug)]
pub(super) struct ModuleDirectory {
    /// The path as the user named it.
    named: PathBuf,
    /// Its state when the load began; `None` after the load, or if there was no directory.
    pinned: Mutex<Option<ResolvedDirectory>>,
}

/// A directory without symlinks.
#[derive(Clone, Debug)]
struct ResolvedDirectory {
    real: PathBuf,
    /// The target of `..data`, if it is a mounted volume.
    data: Option<PathBuf>,
}

/// A module that was looked up.
pub(super) struct ModuleFile {
    pub(super) text: String,
    /// The file that symlinks lead to.
    pub(super) real: Option<PathBuf>,
}

impl ModuleFile {
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.text)
    }
}

impl ModuleDirectory {
    /// Returns the directory of this script in its current state.
    pub(super) fn of(script: &Path) -> Self {
        let named = match script.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        // An error of the directory is reported when a module is loaded.
        let pinned = Mutex::new(ResolvedDirectory::of(&named).ok());
        ModuleDirectory { named, pinned }
    }

    /// Looks modules up in the current state of the directory from now on.
    pub(super) fn unpin(&self) {
        *self.pinned.lock() = None;
    }

    /// Returns the path of a module as the user would write it.
    pub(super) fn path(&self, file: &Path) -> PathBuf {
        self.named.join(file)
    }

    pub(super) fn read(&self, file: &Path) -> Result<ModuleFile, UnreadModule> {
        let pinned = self.pinned.lock().clone();
        let place = pinned.map_or_else(|| ResolvedDirectory::of(&self.named), Ok)?;
        let real = place.find(file)?;
        let kind = fs::metadata(&real)?;
        if !kind.is_file() {
            // Reading a pipe would never end.
            return Err(UnreadModule::Special);
        }
        let mut bytes = Vec::new();
        fs::File::open(&real)?.take(MODULE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if super::bytes(bytes.len()) > MODULE_BYTES_MAX {
            return Err(UnreadModule::TooLarge);
        }
        let text = String::from_utf8(bytes).map_err(|_problem| UnreadModule::NotText)?;
        Ok(ModuleFile { text, real: Some(real) })
    }
}

impl ResolvedDirectory {
    fn of(named: &Path) -> std::io::Result<Self> {
        let real = named.canonicalize()?;
        let data = real.join(DATA).canonicalize().ok().filter(|it| it.starts_with(&real));
        Ok(ResolvedDirectory { real, data })
    }

    /// Returns the file behind a module, which must be in this directory.
    fn find(&self, file: &Path) -> Result<PathBuf, UnreadModule> {
        let kept =
            self.data.as_ref().map(|it| it.join(file).canonicalize().map_err(UnreadModule::from));
        let found = match kept {
            // A file that is not part of the volume may still be next to it.
            None | Some(Err(UnreadModule::Missing)) => self.real.join(file).canonicalize()?,
            Some(kept) => kept?,
        };
        let Ok(within) = found.strip_prefix(&self.real) else { return Err(UnreadModule::LeadsOut) };
        let is_of = |volume: &PathBuf| found.starts_with(volume);
        if self.data.is_some() && is_versioned(within) && !self.data.as_ref().is_some_and(is_of) {
            return Err(UnreadModule::Changed);
        }
        Ok(found)
    }
}

/// Returns whether the path is in a directory that `..data` may lead to: `..2026_11_21_03_04_05.123456789`.
fn is_versioned(within: &Path) -> bool {
    let first = within.components().next();
    first.is_some_and(|it| match it {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b".."),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    })
}
