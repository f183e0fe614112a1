//! The memory of one script: what its calls have taken and not given back.
//!
//! Calls of a script compute in turns, so its memory is the sum of what the turns have added, each counted on its own
//! thread by the allocator. What a call hands over to the host (results, patches, lines of the log) is freed elsewhere and
//! leaves the sum at the end of the turn; see [`super::control::given`].

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicIsize, Ordering},
    },
};

use crate::ports::{Document, WeakDocument};

/// Fewer memos than this are not worth to be looked through for those that are gone.
const MEMOS_LEAST: usize = 64;

/// The memory of one script, shared by its calls.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    held: AtomicIsize,
    memos: Mutex<Memos>,
}

/// What the script has put into memos, by the address of the document: the script holds it through its objects.
#[derive(Debug, Default)]
struct Memos {
    all: BTreeMap<usize, (WeakDocument, isize)>,
    total: isize,
    /// So many when those that are gone were last taken out.
    swept: usize,
}

impl Ledger {
    /// For a script that may hold so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Ledger { limit, held: AtomicIsize::new(0), memos: Mutex::default() }
    }

    /// The most that it may hold.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// What it holds between its turns. May be a little below zero: not all of what it frees was its own.
    pub(super) fn held(&self) -> isize {
        self.held.load(Ordering::Relaxed)
    }

    /// How much a turn may add that begins now.
    pub(super) fn left(&self) -> isize {
        isize::try_from(self.limit).unwrap_or(isize::MAX).saturating_sub(self.held())
    }

    /// What a turn has added.
    pub(super) fn add(&self, bytes: isize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    fn memos(&self) -> MutexGuard<'_, Memos> {
        self.memos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the memos of the script hold as much as the script itself may.
    pub(super) fn memos_are_full(&self) -> bool {
        let limit = isize::try_from(self.limit).unwrap_or(isize::MAX);
        let mut memos = self.memos();
        if memos.total > limit {
            memos.sweep();
        }
        memos.total > limit
    }

    /// What a change has added to a memo.
    pub(super) fn charge(&self, memo: &Document, bytes: isize) {
        let is_empty = memo.is_empty();
        let mut memos = self.memos();
        let (_, charged) = memos.all.entry(memo.address()).or_insert_with(|| (memo.downgrade(), 0));
        *charged += bytes;
        memos.total += bytes;
        if is_empty {
            // The document can be let go then, which a note of it would prevent.
            let (_, charged) = memos.all.remove(&memo.address()).unzip();
            memos.total -= charged.unwrap_or_default();
        }
        if memos.all.len() >= (2 * memos.swept).max(MEMOS_LEAST) {
            memos.sweep();
        }
    }
}

impl Memos {
    /// Takes out those whose objects are gone.
    fn sweep(&mut self) {
        self.all.retain(|_, (memo, _)| memo.is_alive());
        self.total = self.all.values().map(|(_, bytes)| bytes).sum();
        self.swept = self.all.len();
    }
}
