//! Where the modules of a script come from, and what was taken from there: the same for both languages.
//!
//! A script loads modules from below its own directory, or from a set of texts, and from nowhere else. While it is loaded,
//! a mounted volume is seen as it was in the beginning, so that no script is made of two versions of a ConfigMap.

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

use blake2::{Blake2b, Digest as _, digest::consts::U16};
use parking_lot::Mutex;

use self::directory::{Directory, Found};
pub(crate) use self::name::{file_of, library_of};
use super::bounds;
use crate::scripting::values::files::{Files, Unread};

/// The most modules one script may ask for, those that are not there included: each is remembered.
const MODULES_MAX: usize = 256;
/// Larger than any module somebody writes; keeps a wrong file from filling the memory.
const MODULE_BYTES_MAX: u64 = 1 << 20;
/// All modules of one script together: their texts are kept for messages.
const ALL_BYTES_MAX: usize = 16 << 20;

/// The modules that one script can load. Clones are the same thing: what the script takes is seen by all of them.
///
/// It belongs to one loading of one script: the next generation gets a new one.
#[derive(Clone, Debug, Default)]
pub struct Modules(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    root: Root,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
enum Root {
    /// The script is in no directory.
    #[default]
    Nowhere,
    Directory(Directory),
    /// By path, with the extension.
    Texts(BTreeMap<PathBuf, String>),
}

/// What the script has asked for.
#[derive(Debug, Default)]
struct Taken {
    by_file: BTreeMap<PathBuf, (LoadedModule, Option<Arc<str>>)>,
    /// Of all texts.
    bytes: usize,
}

/// A module that a script has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// Its path below the directory of the script, with the extension: `lib/naming.lua`.
    pub name: PathBuf,
    /// Where it is, or would be, as the script names it; `None` if it comes from no file.
    pub path: Option<PathBuf>,
    /// The file that symlinks lead to from there, if there is one.
    pub real: Option<PathBuf>,
    /// What was read; `None` if nothing could be: the script may have gone on without it.
    pub digest: Option<Digest>,
}

/// Tells texts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

/// Why there is no such module for this script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// Never, whatever is on the disk.
    #[error("refused: {0}")]
    Refused(String),
    /// Not now.
    #[error("not found: {0}")]
    Missing(String),
}

impl Modules {
    /// The modules in the directory of this script. A mounted volume is seen as it is now: call this before the script itself
    /// is read.
    pub fn beside(script: &Path) -> Self {
        let root = Root::Directory(Directory::of(script));
        Modules(Arc::new(Inner { root, taken: Mutex::default() }))
    }

    /// Modules that are in no file: texts by their path, such as `lib/naming.lua`.
    pub fn of_texts(texts: BTreeMap<PathBuf, String>) -> Self {
        Modules(Arc::new(Inner { root: Root::Texts(texts), taken: Mutex::default() }))
    }

    /// What the script has asked for until now, also if loading it failed.
    pub fn taken(&self) -> Vec<LoadedModule> {
        self.0.taken.lock().by_file.values().map(|(module, _)| module.clone()).collect()
    }

    /// The texts that the script has taken until now, by their files.
    pub(crate) fn texts(&self) -> Vec<(PathBuf, Arc<str>)> {
        let taken = self.0.taken.lock();
        let texts =
            taken.by_file.iter().filter_map(|(file, (_, text))| Some((file, text.as_ref()?)));
        texts.map(|(file, text)| (file.clone(), Arc::clone(text))).collect()
    }

    /// Whether this name is in any text that the script has taken until now.
    pub(crate) fn name(&self, name: &str) -> bool {
        let taken = self.0.taken.lock();
        taken.by_file.values().any(|(_, text)| text.as_ref().is_some_and(|it| it.contains(name)))
    }

    /// Whether a script that took these would find the same here. Takes nothing.
    pub fn would_give(&self, taken: &[LoadedModule]) -> bool {
        taken.iter().all(|it| self.find(&it.name).ok().map(|it| it.digest()) == it.digest)
    }

    /// What is there now under the name of a module, if anything is. Takes nothing.
    pub fn digest(&self, name: &Path) -> Option<Digest> {
        self.find(name).ok().map(|it| it.digest())
    }

    /// The text of a module, for a script that is called so in messages. The file is from [`file_of`].
    ///
    /// What was read once stays the same: a script that starts afresh, because its memory was full, is the one it was.
    pub(crate) fn read(&self, file: &Path, script: &str) -> Result<Arc<str>, Problem> {
        let mut taken = self.0.taken.lock();
        if let Some((_, Some(text))) = taken.by_file.get(file) {
            return Ok(Arc::clone(text));
        }
        if taken.by_file.len() >= MODULES_MAX && !taken.by_file.contains_key(file) {
            return Err(Problem::Refused(format!("a script has at most {MODULES_MAX} modules")));
        }
        let found = self.find(file);
        let module = LoadedModule {
            name: file.to_owned(),
            path: self.path(file),
            real: found.as_ref().ok().and_then(|it| it.real.clone()),
            digest: found.as_ref().ok().map(Found::digest),
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
            return Err(Problem::Refused(problem));
        }
        taken.bytes += if fits { size } else { 0 };
        text.ok_or_else(|| {
            let mib = ALL_BYTES_MAX >> 20;
            Problem::Refused(format!("all modules together are larger than {mib} MiB"))
        })
    }

    /// Returns what reads other files of this script, such as templates: `x` is `x.j2`.
    pub(crate) fn files_of(&self, script: &str) -> Files {
        let (modules, script) = (self.clone(), script.to_owned());
        Files::by(move |name| {
            let extension = Path::new(name).extension().and_then(|it| it.to_str());
            let read = file_of(name, extension.unwrap_or("j2"))
                .and_then(|file| modules.read(&file, &script));
            read.map_err(|it| match it {
                Problem::Refused(problem) => Unread::Refused(problem),
                Problem::Missing(problem) => Unread::Missing(problem),
            })
        })
    }

    /// The script is loaded: a module that it asks for later is read from the volume as it is then.
    pub(crate) fn settle(&self) {
        match &self.0.root {
            Root::Directory(directory) => directory.unpin(),
            Root::Nowhere | Root::Texts(_) => {}
        }
    }

    fn find(&self, file: &Path) -> Result<Found, Failed> {
        match &self.0.root {
            Root::Nowhere => Err(Failed::NoDirectory),
            Root::Directory(directory) => directory.read(file),
            Root::Texts(texts) => {
                let text = texts.get(file).ok_or(Failed::Missing)?.clone();
                if bytes(text.len()) > MODULE_BYTES_MAX {
                    return Err(Failed::TooLarge);
                }
                Ok(Found { text, real: None })
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

/// What the file of a module is called in messages: beside the script, whatever that is called.
pub fn shown(script: &str, file: &Path) -> String {
    Path::new(script).with_file_name(file).display().to_string()
}

/// Why a file was not read.
#[derive(Debug)]
enum Failed {
    NoDirectory,
    Missing,
    LeadsOut,
    /// Another version of the volume was mounted since the loading began.
    Changed,
    Special,
    TooLarge,
    NotText,
    Unreadable(std::io::Error),
}

impl Failed {
    fn of(self, file: &Path, script: &str) -> Problem {
        let shown = shown(script, file);
        match self {
            Failed::NoDirectory => Problem::Missing("the script is in no directory".into()),
            Failed::Missing => Problem::Missing(format!("there is no {shown}")),
            Failed::LeadsOut => {
                Problem::Refused(format!("{shown} leads out of the script's directory"))
            }
            Failed::Changed => {
                Problem::Missing(format!("{shown} was replaced while the script was loaded"))
            }
            Failed::Special => Problem::Refused(format!("{shown} is no file")),
            Failed::TooLarge => {
                let mib = MODULE_BYTES_MAX >> 20;
                Problem::Refused(format!("{shown} is larger than {mib} MiB"))
            }
            Failed::NotText => Problem::Refused(format!("{shown} is not UTF-8")),
            Failed::Unreadable(error) => Problem::Missing(format!("{shown}: {error}")),
        }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        // A file where a directory is expected is no module either.
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            Failed::Missing
        } else {
            Failed::Unreadable(error)
        }
    }
}

impl Digest {
    /// Of a text.
    pub fn of(text: &str) -> Self {
        Digest(Blake2b::<U16>::digest(text).into())
    }
}

impl fmt::Display for Digest {
    /// In hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
