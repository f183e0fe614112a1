//! Where the modules of a script come from, and which ones it has loaded: the same for both languages.
//!
//! A script loads modules from below its own directory, or from a set of sources in memory, and from nowhere else. While it is
//! loaded, a mounted volume is seen as it was at the beginning, so that no script is mixed from two versions of a ConfigMap.

mod directory;
mod name;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use self::directory::{ModuleDirectory, ModuleFile};
pub(crate) use self::name::{file_of, library_of};
use super::bounds;
use crate::scripting::values::files::{FileReader, Unread};

/// Maximum number of modules that one script may request. Missing ones count: each is remembered.
const MODULES_MAX: usize = 256;
/// Maximum size of a module. Larger than any that is written by hand; keeps a wrong file from filling the memory.
const MODULE_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of all modules of one script together: their sources are kept for messages.
const ALL_BYTES_MAX: usize = 16 << 20;

/// The modules that one script can load. Clones share what the script has loaded.
///
/// Belongs to one load of one script: the next generation gets a new one.
#[derive(Clone, Debug, Default)]
pub struct Modules(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    root: Root,
    taken: Mutex<RequestedModules>,
}

#[derive(Debug, Default)]
enum Root {
    /// The script is not in a directory.
    #[default]
    Nowhere,
    Directory(ModuleDirectory),
    /// By path, with the extension.
    Texts(Arc<BTreeMap<PathBuf, String>>),
}

/// The modules that the script has requested.
#[derive(Debug, Default)]
struct RequestedModules {
    by_file: BTreeMap<PathBuf, (LoadedModule, Option<Arc<str>>)>,
    /// The size of all sources.
    bytes: usize,
}

/// A module that a script has requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// Its path below the directory of the script, with the extension: `lib/naming.lua`.
    pub name: PathBuf,
    /// Where it is, or would be, as the script names it; `None` if it comes from no file.
    pub path: Option<PathBuf>,
    /// The file that symlinks lead to from there, if there is one.
    pub real: Option<PathBuf>,
    /// The digest of its source; `None` if it could not be read: the script may have continued without it.
    pub digest: Option<Digest>,
}

/// The SHA-256 of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Why a script cannot load a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModuleProblem {
    /// Permanent: independent of the files on the disk.
    #[error("refused: {0}")]
    Refused(String),
    /// The file is missing now.
    #[error("not found: {0}")]
    Missing(String),
}

impl Modules {
    /// Returns the modules in the directory of this script. A mounted volume is seen as it is now: call this before the script
    /// itself is read.
    pub fn beside(script: &Path) -> Self {
        let root = Root::Directory(ModuleDirectory::of(script));
        Modules(Arc::new(Inner { root, taken: Mutex::default() }))
    }

    /// Returns modules that are in no file: sources by their path, such as `lib/naming.lua`.
    pub fn of_texts(texts: BTreeMap<PathBuf, String>) -> Self {
        Modules::of_shared_texts(Arc::new(texts))
    }

    /// Returns modules in texts that other scripts can load, too.
    pub fn of_shared_texts(texts: Arc<BTreeMap<PathBuf, String>>) -> Self {
        Modules(Arc::new(Inner { root: Root::Texts(texts), taken: Mutex::default() }))
    }

    /// Returns what the script has requested so far, even if it could not be loaded.
    pub fn taken(&self) -> Vec<LoadedModule> {
        self.0.taken.lock().by_file.values().map(|(module, _)| module.clone()).collect()
    }

    /// Returns the sources that the script has loaded so far, by their files.
    pub(crate) fn texts(&self) -> Vec<(PathBuf, Arc<str>)> {
        let taken = self.0.taken.lock();
        let texts =
            taken.by_file.iter().filter_map(|(file, (_, text))| Some((file, text.as_ref()?)));
        texts.map(|(file, text)| (file.clone(), Arc::clone(text))).collect()
    }

    /// Returns the digests of the sources that the script has loaded so far, by their files.
    pub(crate) fn digests(&self) -> Vec<(PathBuf, Digest)> {
        let taken = self.0.taken.lock();
        let loaded = taken.by_file.iter().filter(|(_, (_, text))| text.is_some());
        loaded.filter_map(|(file, (it, _))| Some((file.clone(), it.digest?))).collect()
    }

    /// Returns whether a script that loaded these modules would find the same ones here. Loads nothing.
    pub fn finds_same(&self, taken: &[LoadedModule]) -> bool {
        taken.iter().all(|it| self.find(&it.name).ok().map(|it| it.digest()) == it.digest)
    }

    /// Returns the digest of the module that has this name now, if there is one. Loads nothing.
    pub fn digest(&self, name: &Path) -> Option<Digest> {
        self.find(name).ok().map(|it| it.digest())
    }

    /// Returns the source of a module. `file` comes from [`file_of`]; messages call the script `script`.
    ///
    /// A module that was read once stays the same, so that a script which restarts because its memory was full runs the same code.
    pub(crate) fn read(&self, file: &Path, script: &str) -> Result<Arc<str>, ModuleProblem> {
        let mut taken = self.0.taken.lock();
        if let Some((_, Some(text))) = taken.by_file.get(file) {
            return Ok(Arc::clone(text));
        }
        if taken.by_file.len() >= MODULES_MAX && !taken.by_file.contains_key(file) {
            return Err(ModuleProblem::Refused(format!(
                "a script has at most {MODULES_MAX} modules"
            )));
        }
        let found = self.find(file);
        let module = LoadedModule {
            name: file.to_owned(),
            path: self.path(file),
            real: found.as_ref().ok().and_then(|it| it.real.clone()),
            digest: found.as_ref().ok().map(ModuleFile::digest),
        };
        let size = found.as_ref().map_or(0, |it| it.text.len());
        let fits = taken.bytes.saturating_add(size) <= ALL_BYTES_MAX;
        let read = found.as_ref().ok().filter(|_| fits);
        let refused =
            read.and_then(|it| bounds::too_many_tokens(&file.to_string_lossy(), &it.text));
        let text = read.filter(|_| refused.is_none()).map(|it| Arc::from(it.text.as_str()));
        taken.by_file.insert(file.to_owned(), (module, text.clone()));
        drop(found.map_err(|it| it.of(file, script))?);
        if let Some(problem) = refused {
            return Err(ModuleProblem::Refused(problem));
        }
        taken.bytes += if fits { size } else { 0 };
        text.ok_or_else(|| {
            let mib = ALL_BYTES_MAX >> 20;
            ModuleProblem::Refused(format!("all modules are larger than {mib} MiB in total"))
        })
    }

    /// Returns a reader of other files of this script, such as templates: `x` is `x.j2`.
    pub(crate) fn files_of(&self, script: &str) -> FileReader {
        let (modules, script) = (self.clone(), script.to_owned());
        FileReader::by(move |name| {
            let extension = Path::new(name).extension().and_then(|it| it.to_str());
            let read = file_of(name, extension.unwrap_or("j2"))
                .and_then(|file| modules.read(&file, &script));
            read.map_err(|it| match it {
                ModuleProblem::Refused(problem) => Unread::Refused(problem),
                ModuleProblem::Missing(problem) => Unread::Missing(problem),
            })
        })
    }

    /// Ends the load: modules that the script requests later are read from the volume as it is then.
    pub(crate) fn settle(&self) {
        match &self.0.root {
            Root::Directory(directory) => directory.unpin(),
            Root::Nowhere | Root::Texts(_) => {}
        }
    }

    fn find(&self, file: &Path) -> Result<ModuleFile, UnreadModule> {
        match &self.0.root {
            Root::Nowhere => Err(UnreadModule::NoDirectory),
            Root::Directory(directory) => directory.read(file),
            Root::Texts(texts) => {
                let text = texts.get(file).ok_or(UnreadModule::Missing)?.clone();
                if bytes(text.len()) > MODULE_BYTES_MAX {
                    return Err(UnreadModule::TooLarge);
                }
                Ok(ModuleFile { text, real: None })
            }
        }
    }

    fn path(&self, file: &Path) -> Option<PathBuf> {
        match &self.0.root {
            Root::Directory(directory) => Some(directory.path(file)),
            Root::Nowhere | Root::Texts(_) => None,
        }
    }
}

/// Returns the name of a module's file in messages: a path next to the script.
pub fn shown(script: &str, file: &Path) -> String {
    Path::new(script).with_file_name(file).display().to_string()
}

/// Why a file was not read.
#[derive(Debug)]
enum UnreadModule {
    NoDirectory,
    Missing,
    LeadsOut,
    /// Another version of the volume has been mounted since the load began.
    Changed,
    Special,
    TooLarge,
    NotText,
    Unreadable(std::io::Error),
}

impl UnreadModule {
    fn of(self, file: &Path, script: &str) -> ModuleProblem {
        let shown = shown(script, file);
        match self {
            UnreadModule::NoDirectory => {
                ModuleProblem::Missing("the script has no directory".into())
            }
            UnreadModule::Missing => ModuleProblem::Missing(format!("there is no {shown}")),
            UnreadModule::LeadsOut => {
                ModuleProblem::Refused(format!("{shown} is outside of the script's directory"))
            }
            UnreadModule::Changed => {
                ModuleProblem::Missing(format!("{shown} was replaced while the script was loaded"))
            }
            UnreadModule::Special => ModuleProblem::Refused(format!("{shown} is not a file")),
            UnreadModule::TooLarge => {
                let mib = MODULE_BYTES_MAX >> 20;
                ModuleProblem::Refused(format!("{shown} is larger than {mib} MiB"))
            }
            UnreadModule::NotText => ModuleProblem::Refused(format!("{shown} is not UTF-8")),
            UnreadModule::Unreadable(error) => ModuleProblem::Missing(format!("{shown}: {error}")),
        }
    }
}

impl From<std::io::Error> for UnreadModule {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        // If a directory on the path is a file, the module is missing, too.
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            UnreadModule::Missing
        } else {
            UnreadModule::Unreadable(error)
        }
    }
}

impl Digest {
    /// Returns the digest of a source.
    pub fn of(text: &str) -> Self {
        Digest(Sha256::digest(text).into())
    }
}

impl fmt::Display for Digest {
    /// Writes the digest as hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
