//! Script files: read as one set, and watched.
//!
//! The shell around `watch_targets` and `mounts`. File systems may block, so everything here runs on a thread for blocking work: a
//! network disk that hangs must not stop the operator.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf, absolute},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    attempt::ModulePaths,
    error::Error,
    fs_events::FsEvents,
    mounts::Mounts,
    paths::{places, read_set},
    watch_targets::WatchTargets,
    watches::Watches,
};
use crate::scripting::Source;
use crate::sorted::CollectSorted as _;
use crate::sources::Notice;

/// The file in which the kernel lists the mounts of this process.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The interval of polling for file systems without notifications: short enough for users, long enough for file servers.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The interval of checks for file systems with notifications: some changes have none, such as a mount over a directory.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The script files on the command line.
#[derive(Clone)]
pub struct ScriptFiles {
    fs_events: FsEvents,
    state: Arc<Mutex<CheckState>>,
}

/// The state between two checks.
struct CheckState {
    /// As users see them.
    paths: Vec<PathBuf>,
    here: PathBuf,
    /// The interval from the option.
    poll: Option<Duration>,
    watches: Option<Watches>,
    /// The scripts that were found last.
    found: Vec<PathBuf>,
    /// The properties of the mounts for the watched directories, and these directories.
    mounts: (WatchTargets, MountProperties),
    /// The messages that were already logged.
    logged: BTreeSet<String>,
}

/// The properties of mounts that affect watching.
#[derive(Clone, Debug, Default)]
struct MountProperties {
    /// A directory that other machines can change, and the type of its file system.
    remote: Option<(PathBuf, String)>,
    /// Files that never change.
    fixed: Vec<PathBuf>,
}

/// The result of a check of the files.
pub(super) struct FilesSnapshot {
    pub(super) scripts: Result<Vec<Source>, Error>,
    /// New messages for the user.
    pub(super) notes: Vec<Notice>,
    /// When to check again without a notification.
    pub(super) again: Duration,
}

impl ScriptFiles {
    /// Creates the set of scripts at these paths under `here`; without paths, at the default locations. They are watched from the
    /// next check on.
    ///
    /// # Errors
    /// Fails if there are no paths, and nothing at the default locations.
    pub fn at(paths: &[PathBuf], here: &Path, poll: Option<Duration>) -> Result<Self, Error> {
        let fs_events = FsEvents::default();
        let state = CheckState {
            paths: places(paths, here)?,
            here: here.to_owned(),
            poll,
            watches: None,
            found: Vec::new(),
            mounts: <(WatchTargets, MountProperties)>::default(),
            logged: BTreeSet::new(),
        };
        Ok(ScriptFiles { fs_events, state: Arc::new(Mutex::new(state)) })
    }

    /// Reads the scripts, without watching.
    ///
    /// # Errors
    /// Fails if a script cannot be used.
    pub fn read(&self) -> Result<Vec<Source>, Error> {
        let state = self.state.lock();
        read_set(&state.paths, &state.here)
    }

    /// Returns the events of the files.
    pub(super) fn fs_events(&self) -> &FsEvents {
        &self.fs_events
    }

    /// Reads the scripts, and watches the files that were read. Blocks.
    pub(super) fn snapshot(&self, known: &ModulePaths) -> FilesSnapshot {
        let mut state = self.state.lock();
        state.snapshot(&self.fs_events, known)
    }
}

impl CheckState {
    fn snapshot(&mut self, fs_events: &FsEvents, known: &ModulePaths) -> FilesSnapshot {
        let paths = self.relevant_paths(known);
        // Watch first: changes during the read are then reported.
        let watches = self.watches.get_or_insert_with(|| Watches::new(fs_events.clone()));
        let trouble = watches.cover(&paths).err();
        let targets = fs_events.targets();
        if self.mounts.0 != targets {
            let mount_properties = mount_properties(&targets, &paths);
            self.mounts = (targets, mount_properties);
        }
        let scripts = read_set(&self.paths, &self.here);
        if let Ok(scripts) = &scripts {
            self.found = scripts.iter().map(|it| PathBuf::from(&it.name)).collect();
        }
        let is_notified = trouble.is_none() && self.mounts.1.remote.is_none();
        let again = self.poll.unwrap_or(if is_notified { CHECK_INTERVAL } else { POLL_INTERVAL });
        let notes = self.notes(trouble.as_deref(), again);
        let notes =
            notes.into_iter().filter(|it| self.logged.insert(it.text().to_owned())).collect();
        FilesSnapshot { scripts, notes, again }
    }

    /// Returns all paths whose changes matter: those on the command line, the scripts found there, and their modules.
    fn relevant_paths(&self, known: &ModulePaths) -> BTreeSet<PathBuf> {
        let scripts = self.paths.iter().chain(&self.found).map(|it| self.here.join(it));
        let modules = known.paths.iter().cloned();
        // Without a current directory, relative paths cannot be resolved.
        scripts.chain(modules).filter_map(|it| absolute(it).ok()).collect_set()
    }

    fn notes(&self, trouble: Option<&str>, again: Duration) -> Vec<Notice> {
        let seconds = again.as_secs_f64();
        let mut notes = Vec::new();
        if let Some(trouble) = trouble {
            notes.push(Notice::Warning(format!(
                "The system does not report changes of the scripts; polling every {seconds} s instead: {trouble}."
            )));
        }
        if let (Some((directory, kind)), None) = (&self.mounts.1.remote, self.poll) {
            notes.push(Notice::Info(format!(
                "'{}' is on a network file system ({kind}), which does not report changes: polling every {seconds} s \
                 (--reload-poll).",
                directory.display()
            )));
        }
        for file in &self.mounts.1.fixed {
            notes.push(Notice::Warning(format!(
                "'{}' is mounted as a single file, as with subPath, and will not receive edits. To enable hot reload, mount the whole \
                 directory, or use --from-configmap.",
                file.display()
            )));
        }
        notes
    }
}

/// Returns the properties of the mounts of these directories and files.
fn mount_properties(targets: &WatchTargets, paths: &BTreeSet<PathBuf>) -> MountProperties {
    let Ok(text) = fs::read(MOUNTS) else { return MountProperties::default() };
    let mounts = Mounts::parse(&text);
    let remote = targets.0.keys().find_map(|it| Some((it.clone(), mounts.remote(it)?.to_owned())));
    let is_fixed = |path: &&PathBuf| {
        let real = path.canonicalize();
        real.is_ok_and(|it| it.is_file() && mounts.is_mounted_alone(&it))
    };
    MountProperties { remote, fixed: paths.iter().filter(is_fixed).cloned().collect() }
}
