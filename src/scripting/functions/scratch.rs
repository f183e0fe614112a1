//! Scratch files: data that is too large for the memory of a script, passed from one server to another.
//!
//! Scripts refer to them by names that are valid for one call. In the file system, they have no names: however a call or the
//! process ends, the system frees them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::outcome::Failure;
use crate::call::Invocation;
use crate::logic::access::grants::{Access, Denied};
use crate::scripting::values::text::did_you_mean;

/// Maximum number of files of one script: each is an open file of the process.
const FILES_MAX: usize = 64;
/// The number of bytes in one read.
const PIECE: usize = 64 * 1024;

/// The scratch files of one script.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    used: Arc<AtomicU64>,
    calls: Mutex<BTreeMap<usize, ScratchFiles>>,
}

/// The files of one call.
#[derive(Debug)]
struct ScratchFiles {
    /// `None` for the top level, which has no invocation.
    call: Option<Weak<Invocation>>,
    by_name: BTreeMap<String, Arc<ScratchFile>>,
}

/// A file that is complete.
#[derive(Debug)]
pub(super) struct ScratchFile {
    file: File,
    size: u64,
    _share: Share,
}

/// A file that is being written.
pub(super) struct Draft {
    file: File,
    share: Share,
    limit: u64,
    directory: PathBuf,
}

/// The share of a file in the limit of its script.
#[derive(Debug)]
struct Share {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Scratch {
    /// Returns the file of the call with this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn get(
        &self,
        present: Option<&Arc<Invocation>>,
        name: &str,
    ) -> Result<Arc<ScratchFile>, Failure> {
        let calls = self.calls.lock();
        let files = calls.get(&id(present));
        if let Some(file) = files.and_then(|it| it.by_name.get(name)) {
            return Ok(Arc::clone(file));
        }
        let known: Vec<_> =
            files.into_iter().flat_map(|it| it.by_name.keys().map(String::as_str)).collect();
        let near = did_you_mean(name, known.iter().copied(), "");
        let name = serde_json::Value::from(name);
        let hint = "create it with the option `to` of a request in the same call of a handler";
        Err(format!("`from`: there is no scratch file {name}{near}; {hint}").into())
    }

    /// Adds a file to the call, in place of one with the same name.
    fn keep(
        &self,
        present: Option<&Arc<Invocation>>,
        name: &str,
        file: ScratchFile,
    ) -> Result<(), Failure> {
        let mut calls = self.calls.lock();
        // A file may have been added after its call was abandoned.
        calls.retain(|_, it| it.call.as_ref().is_none_or(|it| it.strong_count() > 0));
        let count: usize = calls.values().map(|it| it.by_name.len()).sum();
        let files = calls.entry(id(present)).or_insert_with(|| ScratchFiles {
            call: present.map(Arc::downgrade),
            by_name: BTreeMap::new(),
        });
        if count >= FILES_MAX && !files.by_name.contains_key(name) {
            return Err(format!("`to`: the script has {FILES_MAX} scratch files already").into());
        }
        files.by_name.insert(name.to_owned(), Arc::new(file));
        Ok(())
    }

    /// Frees the files of a call that has ended.
    pub(crate) fn free(&self, present: Option<&Arc<Invocation>>) {
        let freed = self.calls.lock().remove(&id(present));
        drop(freed);
    }
}

/// Returns the identity of a call among the running ones.
fn id(present: Option<&Arc<Invocation>>) -> usize {
    present.map_or(0, |it| Arc::as_ptr(it).addr())
}

/// Returns the directory for the scratch files of a script.
///
/// # Errors
/// None is granted.
pub(super) fn directory(access: &Access) -> Result<&Path, Failure> {
    access.scratch().ok_or_else(|| Denied::scratch(&std::env::temp_dir()).to_string().into())
}

impl Draft {
    /// Creates a file in this directory. All files of the script together are limited in bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) async fn new(
        scratch: &Scratch,
        directory: PathBuf,
        size_max: usize,
    ) -> Result<Self, Failure> {
        let share = Share { used: Arc::clone(&scratch.used), bytes: 0 };
        let limit = u64::try_from(size_max).unwrap_or(u64::MAX);
        elsewhere(move || match tempfile::tempfile_in(&directory) {
            Ok(file) => Ok(Draft { file, share, limit, directory }),
            Err(error) => Err(io_failure(&directory, &error)),
        })
        .await
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The scratch files of the script would be too large, or the disk is full.
    pub(super) async fn write(mut self, bytes: Bytes) -> Result<Self, Failure> {
        self.share.grow(bytes.len(), self.limit)?;
        elsewhere(move || match self.file.write_all(&bytes) {
            Ok(()) => Ok(self),
            Err(error) => Err(io_failure(&self.directory, &error)),
        })
        .await
    }

    /// Completes the file, and adds it to the call. Returns its size in bytes.
    ///
    /// # Errors
    /// The script has too many files.
    pub(super) fn finish(
        self,
        scratch: &Scratch,
        present: Option<&Arc<Invocation>>,
        name: &str,
    ) -> Result<u64, Failure> {
        let Draft { file, share, .. } = self;
        let size = share.bytes;
        let file = ScratchFile { file, size, _share: share };
        scratch.keep(present, name, file)?;
        Ok(size)
    }
}

/// Returns an error of the system for a directory.
fn io_failure(directory: &Path, error: &io::Error) -> Failure {
    format!("`to`: cannot create a scratch file in {}: {error}", directory.display()).into()
}

/// Works on a file on another thread, because disks may be slow.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|it| Err(Failure::Plain(it.to_string())))
}

impl Share {
    fn grow(&mut self, bytes: usize, limit: u64) -> Result<(), Failure> {
        let more = u64::try_from(bytes).unwrap_or(u64::MAX);
        let fits = |used: u64| used.checked_add(more).filter(|it| *it <= limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let limit = crate::logic::text::size::shown(usize::try_from(limit).unwrap_or_default());
            return Err(format!(
                "`to`: the scratch files of the script would be larger than {limit} (settings.sandbox.scratch_size)"
            )
            .into());
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ScratchFile {
    /// Returns its size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes at this offset, up to one piece; none at the end. Concurrent readers are possible.
    ///
    /// # Errors
    /// The system cannot read it.
    pub(super) fn read_at(&self, offset: u64) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE];
        let read = self.file.read_at(&mut piece, offset)?;
        piece.truncate(read);
        Ok(piece.into())
    }

    /// Returns all bytes.
    ///
    /// # Errors
    /// There are more than `bytes_max`, or the system cannot read it.
    pub(super) fn read(&self, bytes_max: usize) -> Result<Bytes, Failure> {
        if usize::try_from(self.size).is_ok_and(|it| it > bytes_max) {
            return Err(
                format!("`from`: {} bytes are more than a fake can receive", self.size).into()
            );
        }
        let mut bytes = Vec::new();
        loop {
            let offset = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let piece = self.read_at(offset).map_err(|it| Failure::Plain(it.to_string()))?;
            if piece.is_empty() {
                return Ok(bytes.into());
            }
            bytes.extend_from_slice(&piece);
        }
    }
}
