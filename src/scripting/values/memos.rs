//! The total size of what one script has stored in memos and indexes, and in patches that are not sent yet.
//!
//! A memo belongs to an object, not to a script: it stays when the script restarts, and is dropped with its object. So memos do not
//! count as the memory of a script, and have a separate limit of the same size. The same holds for the values of indexes and for patches.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::Value;

use super::limits;
use crate::call::{
    Cause, Invocation, ObjectCause, PatchBudget, SharedDocument, SharedPatch, WeakDocument,
};
use crate::heap;
use crate::logic::{
    background::indexing::{Owner, entry_bytes},
    handlers::{handler::Kind, outcome::CallEnd},
    object::measure,
};

/// Minimum number of notes before those of dropped memos are removed.
const NOTES_MIN: usize = 64;

/// The memos of one script, shared by its calls.
#[derive(Debug)]
pub(crate) struct Memos {
    limit: usize,
    notes: Mutex<Notes>,
    /// The bytes of the indexes that the script fills, by id.
    indexes: Mutex<BTreeMap<Arc<str>, Arc<AtomicUsize>>>,
    patches: Arc<PatchBudget>,
}

/// Maximum number of entries of one object in one index.
const ENTRIES_MAX: usize = 10_000;

/// By the address of the document. The note keeps the address from being reused.
#[derive(Debug, Default)]
struct Notes {
    all: BTreeMap<usize, (WeakDocument, isize)>,
    total: isize,
    /// The number of notes after those of dropped memos were last removed.
    swept: usize,
}

impl Memos {
    /// Returns the account of a script whose memos may hold `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let patches = Arc::new(PatchBudget::new(limit));
        Memos { limit, notes: Mutex::default(), indexes: Mutex::default(), patches }
    }

    /// Returns the budget of the patches of all objects.
    pub(crate) fn patches(&self) -> &Arc<PatchBudget> {
        &self.patches
    }

    /// Checks the size of a patch as a whole, in bytes, and counts it until it is sent.
    ///
    /// # Errors
    /// The message for the script, if all its patches together are too large.
    pub(crate) fn admit_patch(&self, patch: &SharedPatch, bytes: usize) -> Result<(), String> {
        let fits = patch.charges().set_total(&self.patches, bytes);
        if fits { Ok(()) } else { Err(limits::too_much_in_patches(self.limit)) }
    }

    /// Checks the size of what a function has returned, and counts it from now on as a part of the index or the patch that it is for.
    ///
    /// # Errors
    /// The message for the script, if it is too large.
    pub(crate) fn admit_result(&self, call: &Invocation, result: &CallEnd) -> Result<(), String> {
        match (&call.cause, result) {
            _ if call.handler.kind == Kind::Index => self.admit_to_index(call, result),
            (Cause::Object(cause), CallEnd::Returned(Some(value))) => {
                let fits = cause.patch.charges().add(&self.patches, entry_bytes(0, value));
                if fits { Ok(()) } else { Err(limits::too_much_in_patches(self.limit)) }
            }
            (Cause::Object(_) | Cause::Activity(_), _) => Ok(()),
        }
    }

    fn admit_to_index(&self, call: &Invocation, result: &CallEnd) -> Result<(), String> {
        let (entries, bytes) = match result {
            CallEnd::Keyed(entries) => {
                let bytes = entries.iter().map(|(key, it)| entry_bytes(measure::bytes(key), it));
                (entries.len(), bytes.sum::<usize>())
            }
            CallEnd::Returned(Some(Value::Object(fields))) => {
                let bytes = fields.iter().map(|(key, it)| entry_bytes(key.len(), it));
                (fields.len(), bytes.sum())
            }
            CallEnd::Returned(Some(value)) => (1, entry_bytes(0, value)),
            CallEnd::Returned(None) | CallEnd::Raised(_) => return Ok(()),
        };
        if entries > ENTRIES_MAX {
            return Err(format!(
                "the result has {entries} entries: an object can have at most {ENTRIES_MAX} in an index"
            ));
        }
        let Some(index) = call.services.indexes.get(&call.handler.id) else { return Ok(()) };
        let mut known = self.indexes.lock();
        known.insert(Arc::clone(index.id()), Arc::clone(index.bytes()));
        let held: usize = known.values().map(|it| it.load(Ordering::Relaxed)).sum();
        if held.saturating_add(bytes) > self.limit {
            return Err(limits::too_much_in_indexes(self.limit));
        }
        if let Cause::Object(ObjectCause { object, .. }) = &call.cause {
            index.reserve(Owner::of(object.header()), bytes);
        }
        Ok(())
    }

    /// Checks that the memos have room for more.
    ///
    /// # Errors
    /// The message for the script, if they are full.
    pub(crate) fn admit(&self) -> Result<(), String> {
        let limit = isize::try_from(self.limit).unwrap_or(isize::MAX);
        let mut notes = self.notes.lock();
        if notes.total > limit {
            notes.sweep();
        }
        if notes.total > limit { Err(limits::too_much_in_memos(self.limit)) } else { Ok(()) }
    }

    /// Returns the approximate bytes of all memos.
    pub(crate) fn held(&self) -> usize {
        self.notes.lock().total.try_into().unwrap_or_default()
    }

    /// Counts what a change has added to a memo, in bytes of the allocator.
    pub(crate) fn charge(&self, memo: &SharedDocument, bytes: isize) {
        let is_empty = memo.is_empty();
        let mut notes = self.notes.lock();
        heap::lasting(|| {
            let note = notes.all.entry(memo.address());
            note.or_insert_with(|| (memo.downgrade(), 0)).1 += bytes;
        });
        notes.total += bytes;
        if is_empty {
            // The document can be freed then, which a note of it would prevent.
            let (_, charged) = notes.all.remove(&memo.address()).unzip();
            notes.total -= charged.unwrap_or_default();
        }
        if notes.all.len() >= (2 * notes.swept).max(NOTES_MIN) {
            notes.sweep();
        }
    }
}

impl Notes {
    /// Removes the notes of dropped memos.
    fn sweep(&mut self) {
        self.all.retain(|_, (memo, _)| memo.is_alive());
        self.total = self.all.values().map(|(_, bytes)| bytes).sum();
        self.swept = self.all.len();
    }
}
