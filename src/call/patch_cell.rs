//! The patch of a cycle, which its scripts fill.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::PatchCharges;
use crate::logic::change::patch::Patch;

/// The patch of a cycle, shared with the scripts that run in it.
pub type SharedPatch = Arc<PatchCell>;

/// A patch behind a lock. Most waiting calls have no patch: it is allocated when it is first locked.
#[derive(Debug, Default)]
pub struct PatchCell(OnceLock<Box<HeldPatch>>);

#[derive(Debug, Default)]
struct HeldPatch {
    patch: Mutex<Patch>,
    /// How often the patch was locked for a change.
    revision: AtomicU64,
    /// When a daemon first waited with changes.
    unsent_since: OnceLock<Instant>,
    is_reported: AtomicBool,
    /// What is counted for the content, until it is sent.
    charges: Mutex<PatchCharges>,
}

impl PatchCell {
    /// Locks the patch for a change. Hold the guard for a few lines, never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Patch> {
        let held = self.0.get_or_init(Box::default);
        held.revision.fetch_add(1, Ordering::Relaxed);
        held.patch.lock()
    }

    /// Returns a number that is another one after each change.
    pub fn revision(&self) -> u64 {
        self.0.get().map_or(0, |it| it.revision.load(Ordering::Relaxed))
    }

    /// Locks the patch for reading, if it was ever changed. Hold the guard for a few lines only.
    pub fn peek(&self) -> Option<MutexGuard<'_, Patch>> {
        self.0.get().map(|it| it.patch.lock())
    }

    /// Takes the content and leaves an empty patch.
    pub fn take(&self) -> Patch {
        let mut lock = self.0.get().map(|_| self.lock());
        lock.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Locks what is counted for the content. Hold the guard for a few lines only.
    pub fn charges(&self) -> MutexGuard<'_, PatchCharges> {
        self.0.get_or_init(Box::default).charges.lock()
    }

    /// Returns whether anything is counted for the content.
    pub fn is_charged(&self) -> bool {
        self.0.get().is_some_and(|it| !it.charges.lock().is_empty())
    }

    /// Takes what is counted for the content, for whoever has taken the content.
    pub fn take_charges(&self) -> PatchCharges {
        self.0.get().map(|it| std::mem::take(&mut *it.charges.lock())).unwrap_or_default()
    }

    /// Returns since when the changes wait, which is the first call of this function; `None` if the wait was reported.
    pub(super) fn unsent_since(&self) -> Option<Instant> {
        let held = self.0.get().filter(|it| !it.is_reported.load(Ordering::Relaxed))?;
        Some(*held.unsent_since.get_or_init(Instant::now))
    }

    /// Marks the wait of the changes as reported. Returns whether there are changes whose wait was not reported before.
    pub(super) fn report_unsent(&self) -> bool {
        self.0.get().is_some_and(|it| !it.is_reported.swap(true, Ordering::Relaxed))
    }

    /// Drops the functions: scripts can hold the patch, and its functions would keep the scripts alive.
    pub fn forget_functions(&self) {
        if self.0.get().is_some() {
            let functions = std::mem::take(&mut self.lock().transformations);
            // Dropped after the lock is released.
            drop(functions);
        }
    }
}

impl From<Patch> for PatchCell {
    fn from(patch: Patch) -> Self {
        if patch.is_empty() {
            return PatchCell::default();
        }
        let held = HeldPatch { patch: Mutex::new(patch), ..HeldPatch::default() };
        PatchCell(OnceLock::from(Box::new(held)))
    }
}

/// A guard that drops the functions of a patch at the end, and what is counted for its content: scripts can hold the patch. Its functions
/// would keep them loaded, and its content is their own memory then.
#[derive(Debug)]
pub struct ClearOnDrop(pub SharedPatch);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.forget_functions();
        drop(self.0.take_charges());
    }
}
