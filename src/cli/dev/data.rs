//! The file of `--data`: loaded at the start, saved within seconds after changes and at the end.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::cli::report::Report;
use kopf_apiserver::{
    ApiServer,
    snapshot::{Error, Snapshot},
};

/// Maximum time from a change to its saving: a crash loses no more than this, and a burst of changes is saved once.
const SAVED_WITHIN: Duration = Duration::from_secs(3);

/// The data file. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct DataFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Locked as long as this process uses the file: two servers would undo each other's changes.
    lock: PathBuf,
    _locked: File,
    /// The revision in the file. Locked during writes, so that writers wait for each other.
    saved: Mutex<u64>,
}

impl DataFile {
    /// Fills a new server from the file, which is created if missing. Returns the number of objects in it.
    pub(super) fn open(path: &Path, server: &ApiServer) -> Result<(Self, usize), Report> {
        let lock = lock_of(path);
        let locked = take_lock(path, &lock)?;
        let snapshot = Snapshot::read(path).map_err(|problem| report(&problem))?;
        let count = snapshot.as_ref().map_or(0, Snapshot::len);
        if let Some(snapshot) = snapshot {
            server.restore(snapshot).map_err(|resource| {
                let path = path.display();
                Report::failure(format!("'{path}' has objects of {resource}, which the server does not serve"))
                    .with_hint(
                        "it may have been written by another version of kopf: use that version, or move the file away",
                    )
            })?;
        }
        let saved = Mutex::new(u64::MAX);
        let data = DataFile(Arc::new(Inner { path: path.into(), lock, _locked: locked, saved }));
        // Report a file that cannot be written now, not at the end.
        data.save(server).map_err(|problem| unwritable(path, &problem))?;
        Ok((data, count))
    }

    /// Saves after changes, until `stop`.
    pub(super) async fn keep(self, server: ApiServer, stop: CancellationToken) {
        let mut was_saved = true;
        loop {
            let saved = *self.0.saved.lock();
            tokio::select! {
                biased; // the stop signal first: after it, the caller saves
                () = stop.cancelled() => return,
                () = server.moved(saved) => {}
            }
            tokio::select! {
                biased; // the stop signal first
                () = stop.cancelled() => return,
                () = time::sleep(SAVED_WITHIN) => {}
            }
            let (data, its) = (self.clone(), server.clone());
            // Not on this thread: a disk can be slow.
            let done = tokio::task::spawn_blocking(move || data.save(&its)).await;
            match done {
                Ok(Err(problem)) if was_saved => {
                    let path = self.0.path.display();
                    tracing::error!(target: "kopf.dev", "Cannot save '{path}', will retry: {problem}");
                    was_saved = false;
                }
                Ok(Err(_)) => {}
                Ok(Ok(())) => {
                    let path = self.0.path.display();
                    tracing::debug!(target: "kopf.dev", "Saved the objects in {path}.");
                    was_saved = true;
                }
                // A bug; the panic hook has reported it.
                Err(_) => return,
            }
        }
    }

    /// Saves now, if anything has changed.
    pub(super) fn save(&self, server: &ApiServer) -> io::Result<()> {
        let mut saved = self.0.saved.lock();
        let snapshot = server.export();
        if *saved != snapshot.revision() {
            snapshot.write(&self.0.path)?;
            *saved = snapshot.revision();
        }
        Ok(())
    }

    /// Saves at the end.
    pub(super) fn finish(&self, server: &ApiServer) -> Result<(), Report> {
        self.save(server).map_err(|problem| unwritable(&self.0.path, &problem))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // If the file remains, the next process uses it: only the lock on it counts.
        let _left = std::fs::remove_file(&self.lock).is_err();
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    path.with_file_name(name)
}

fn take_lock(path: &Path, lock: &Path) -> Result<File, Report> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).open(lock);
    let file = file.map_err(|problem| unwritable(path, &problem))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(problem)) => Err(unwritable(path, &problem)),
        Err(TryLockError::WouldBlock) => {
            let path = path.display();
            Err(Report::failure(format!("'{path}' is in use by another kopf dev"))
                .with_hint("stop that one, or use another file"))
        }
    }
}

fn unwritable(path: &Path, problem: &io::Error) -> Report {
    Report::failure(format!("cannot save the objects in '{}': {problem}", path.display()))
}

fn report(problem: &Error) -> Report {
    let report = Report::failure(problem.to_string());
    match problem {
        Error::Unreadable { .. } => report,
        Error::Damaged { .. } => report.with_hint(
            "the file was not changed: repair it, or move it away to start without objects",
        ),
    }
}
