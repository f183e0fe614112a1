//! Script files: read as one set, and watched.
//!
//! The shell around `spots` and `mounts`. What it does may block, as file systems do, so it is done on a thread for such work:
//! a network disk that hangs must not stop the operator.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf, absolute},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Error, ear::Ear, live::Known, mounts::Mounts, places, read_set, spots::Spots, watches::Watches,
};
use crate::cli::options::Note;
use crate::scripting::Source;

/// Where the kernel tells the mounts of this process.
const MOUNTS: &str = "/proc/self/mountinfo";

/// How often to look where nobody tells of changes. A person waits for an edit; a server should not notice the questions.
const POLL: Duration = Duration::from_secs(2);

/// How often to look where changes are told: some are not, such as a directory that is mounted over another.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The script files that were named.
#[derive(Clone)]
pub struct Files {
    ear: Ear,
    desk: Arc<Mutex<Desk>>,
}

/// What is used for one look after the other.
struct Desk {
    /// As users see them.
    paths: Vec<PathBuf>,
    here: PathBuf,
    /// As told by an option.
    poll: Option<Duration>,
    watches: Option<Watches>,
    /// The scripts that were found last.
    found: Vec<PathBuf>,
    /// What the mounts mean for the directories that are watched, and which those were.
    mounts: (Spots, Circumstances),
    /// What the user was told already.
    told: BTreeSet<String>,
}

/// What the mounts mean for watching.
#[derive(Clone, Debug, Default)]
struct Circumstances {
    /// A directory where others make changes, and the type of its file system.
    remote: Option<(PathBuf, String)>,
    /// Files that never change.
    fixed: Vec<PathBuf>,
}

/// What a look at the files gives.
pub(super) struct FilesLook {
    pub(super) scripts: Result<Vec<Source>, Error>,
    /// What the user should know, once.
    pub(super) notes: Vec<Note>,
    /// When to look again without being told.
    pub(super) again: Duration,
}

impl Files {
    /// The scripts at these paths under `here`; without paths, at the usual places. They are watched from the next look on.
    ///
    /// # Errors
    /// When there are no paths, and nothing at the usual places.
    pub fn at(paths: &[PathBuf], here: &Path, poll: Option<Duration>) -> Result<Self, Error> {
        let ear = Ear::default();
        let desk = Desk {
            paths: places(paths, here)?,
            here: here.to_owned(),
            poll,
            watches: None,
            found: Vec::new(),
            mounts: <(Spots, Circumstances)>::default(),
            told: BTreeSet::new(),
        };
        Ok(Files { ear, desk: Arc::new(Mutex::new(desk)) })
    }

    /// Reads them, without watching.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn read(&self) -> Result<Vec<Source>, Error> {
        let desk = self.desk.lock();
        read_set(&desk.paths, &desk.here)
    }

    /// Where changes are heard.
    pub(super) fn ear(&self) -> &Ear {
        &self.ear
    }

    /// Reads them, and watches what was read from now on. Blocks.
    pub(super) fn look(&self, known: &Known) -> FilesLook {
        let mut desk = self.desk.lock();
        desk.look(&self.ear, known)
    }
}

impl Desk {
    fn look(&mut self, ear: &Ear, known: &Known) -> FilesLook {
        let paths = self.on_the_way(known);
        // First the watches: what changes while we read is told.
        let watches = self.watches.get_or_insert_with(|| Watches::new(ear.clone()));
        let trouble = watches.cover(&paths).err();
        let spots = ear.spots();
        if self.mounts.0 != spots {
            let circumstances = circumstances(&spots, &paths);
            self.mounts = (spots, circumstances);
        }
        let scripts = read_set(&self.paths, &self.here);
        if let Ok(scripts) = &scripts {
            self.found = scripts.iter().map(|it| PathBuf::from(&it.name)).collect();
        }
        let is_told = trouble.is_none() && self.mounts.1.remote.is_none();
        let again = self.poll.unwrap_or(if is_told { LOOK_AGAIN } else { POLL });
        let notes = self.notes(trouble.as_deref(), again);
        let notes = notes.into_iter().filter(|it| self.told.insert(it.text().to_owned())).collect();
        FilesLook { scripts, notes, again }
    }

    /// Everything that a change could be of: what was named, what was found there, what that has loaded.
    fn on_the_way(&self, known: &Known) -> BTreeSet<PathBuf> {
        let scripts = self.paths.iter().chain(&self.found).map(|it| self.here.join(it));
        let modules = known.paths.iter().cloned();
        // Without a current directory nothing relative can be found.
        scripts.chain(modules).filter_map(|it| absolute(it).ok()).collect()
    }

    fn notes(&self, trouble: Option<&str>, again: Duration) -> Vec<Note> {
        let seconds = again.as_secs_f64();
        let mut notes = Vec::new();
        if let Some(trouble) = trouble {
            notes.push(Note::Warning(format!(
                "The system does not report changes of the scripts; polling every {seconds} s instead: {trouble}."
            )));
        }
        if let (Some((directory, kind)), None) = (&self.mounts.1.remote, self.poll) {
            notes.push(Note::Info(format!(
                "'{}' is on a network file system ({kind}), which does not report changes: polling every {seconds} s \
                 (--reload-poll).",
                directory.display()
            )));
        }
        for file in &self.mounts.1.fixed {
            notes.push(Note::Warning(format!(
                "'{}' is mounted as a single file, as with subPath, and will not receive edits. To enable hot reload, mount the whole \
                 directory, or use --from-configmap.",
                file.display()
            )));
        }
        notes
    }
}

/// What the mounts mean for these directories and files.
fn circumstances(spots: &Spots, paths: &BTreeSet<PathBuf>) -> Circumstances {
    let Ok(text) = fs::read(MOUNTS) else { return Circumstances::default() };
    let mounts = Mounts::parse(&text);
    let remote = spots.0.keys().find_map(|it| Some((it.clone(), mounts.remote(it)?.to_owned())));
    let is_fixed = |path: &&PathBuf| {
        let real = path.canonicalize();
        real.is_ok_and(|it| it.is_file() && mounts.is_mounted_alone(&it))
    };
    Circumstances { remote, fixed: paths.iter().filter(is_fixed).cloned().collect() }
}
