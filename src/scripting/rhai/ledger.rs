//! The memory of one script: what its calls have taken and not given back.
//!
//! Calls of a script compute in turns, so its memory is the sum of what the turns have added, each counted on its own
//! thread by the allocator. What a call hands over to the host (results, patches, lines of the log) is freed elsewhere and
//! leaves the sum at the end of the turn; see [`super::control::given`].

use std::sync::atomic::{AtomicIsize, Ordering};

use crate::scripting::memos::Memos;

/// The memory of one script, shared by its calls.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    held: AtomicIsize,
    /// What it keeps with objects counts for itself.
    pub(super) memos: Memos,
}

impl Ledger {
    /// For a script that may hold so many bytes, and as many again in memos.
    pub(super) fn new(limit: usize) -> Self {
        Ledger { limit, held: AtomicIsize::new(0), memos: Memos::new(limit) }
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
}
