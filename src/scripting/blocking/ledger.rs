//! The memory account of one script: what its calls have allocated and not freed.
//!
//! Calls of a script take turns, so its memory is the sum of what the turns have added, which the allocator counts on each thread. What a
//! call passes to the host (results, patches, log lines) is freed elsewhere and is subtracted at the end of the turn; see
//! [`super::control::given`].

use std::sync::{
    Arc,
    atomic::{AtomicIsize, Ordering},
};

use parking_lot::Mutex;

use crate::call::Invocation;
use crate::scripting::{handles::leftovers::Leftovers, values::memos::Memos};
use crate::telemetry::ScriptUsage;

/// The memory account of one script, shared by its calls.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    usage: ScriptUsage,
    held: AtomicIsize,
    /// What the script retains of calls that have ended, and its bytes at the last check, which `held` includes.
    leftovers: Mutex<(Leftovers, isize)>,
    /// The memos of its objects, which have a separate limit.
    pub(super) memos: Memos,
}

impl Ledger {
    /// Creates the account of a script that may hold `limit` bytes, and as many again in memos.
    pub(super) fn new(limit: usize, usage: ScriptUsage) -> Self {
        Ledger {
            limit,
            usage,
            held: AtomicIsize::new(0),
            leftovers: Mutex::default(),
            memos: Memos::new(limit),
        }
    }

    /// Returns the limit of the script's memory, in bytes.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes held between turns. May be slightly negative: the script also frees memory that was not counted as its
    /// own.
    pub(super) fn held(&self) -> isize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns how many bytes a turn that begins now may add.
    pub(super) fn left(&self) -> isize {
        isize::try_from(self.limit).unwrap_or(isize::MAX).saturating_sub(self.held())
    }

    /// Records that a call has ended: what the script retains of it counts from the next check on.
    pub(super) fn ended(&self, call: &Arc<Invocation>) {
        let mut leftovers = self.leftovers.lock();
        leftovers.0.add(call);
        let is_due = leftovers.0.is_due(self.limit);
        drop(leftovers);
        if is_due {
            self.look_at_leftovers();
        }
    }

    /// Checks how much the script still retains of calls that have ended, and counts it.
    pub(super) fn look_at_leftovers(&self) {
        let mut leftovers = self.leftovers.lock();
        let held = isize::try_from(leftovers.0.look()).unwrap_or(isize::MAX);
        let before = std::mem::replace(&mut leftovers.1, held);
        self.add(held.saturating_sub(before));
    }

    /// Adds the bytes of a turn.
    pub(super) fn add(&self, bytes: isize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.usage.set_memory(usize::try_from(held).unwrap_or_default());
    }
}
