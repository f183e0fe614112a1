//! What one script has put into memos, all of them together.
//!
//! A memo belongs to an object, not to a script: it stays when the script starts afresh, and goes with its object. So memos do
//! not count as the memory of a script, and have a limit of their own, as large as that.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::limits;
use crate::ports::{Document, WeakDocument};

/// Fewer notes than this are not worth to be looked through for memos that are gone.
const NOTES_LEAST: usize = 64;

/// The memos of one script, shared by its calls.
#[derive(Debug)]
pub(crate) struct Memos {
    limit: usize,
    notes: Mutex<Notes>,
}

/// By the address of the document, which the note keeps from being used again.
#[derive(Debug, Default)]
struct Notes {
    all: BTreeMap<usize, (WeakDocument, isize)>,
    total: isize,
    /// So many when those that are gone were last taken out.
    swept: usize,
}

impl Memos {
    /// For a script whose memos may hold so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Memos { limit, notes: Mutex::default() }
    }

    /// Refuses to put in more if there is too much already.
    ///
    /// # Errors
    /// What the script is told.
    pub(crate) fn admit(&self) -> Result<(), String> {
        let limit = isize::try_from(self.limit).unwrap_or(isize::MAX);
        let mut notes = self.notes.lock();
        if notes.total > limit {
            notes.sweep();
        }
        if notes.total > limit { Err(limits::too_much_in_memos(self.limit)) } else { Ok(()) }
    }

    /// Counts what a change has added to a memo, in bytes of the allocator.
    pub(crate) fn charge(&self, memo: &Document, bytes: isize) {
        let is_empty = memo.is_empty();
        let mut notes = self.notes.lock();
        let (_, charged) = notes.all.entry(memo.address()).or_insert_with(|| (memo.downgrade(), 0));
        *charged += bytes;
        notes.total += bytes;
        if is_empty {
            // The document can be let go then, which a note of it would prevent.
            let (_, charged) = notes.all.remove(&memo.address()).unzip();
            notes.total -= charged.unwrap_or_default();
        }
        if notes.all.len() >= (2 * notes.swept).max(NOTES_LEAST) {
            notes.sweep();
        }
    }
}

impl Notes {
    /// Takes out those whose objects are gone.
    fn sweep(&mut self) {
        self.all.retain(|_, (memo, _)| memo.is_alive());
        self.total = self.all.values().map(|(_, bytes)| bytes).sum();
        self.swept = self.all.len();
    }
}
