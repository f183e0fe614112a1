//! The watch cache of one resource: its latest changes.

use std::{collections::VecDeque, sync::Arc};

use tokio::time::Instant;

use crate::store::stored::Stored;

/// Changes kept per resource: more than any client makes between two polls of a watcher. A watcher that falls behind gets a 410, as
/// on the real server.
const CHANGES_MAX: usize = 10_000;

/// Bytes of objects kept per resource, so that a few large objects that change often do not fill the memory.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// One change of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectChange {
    pub(crate) revision: u64,
    /// The time from which watchers may see the change: later than the change itself if a latency is set.
    pub(crate) due: Instant,
    pub(crate) kind: ChangeKind,
    /// The object after the change. For a deletion: its last state, with the new version.
    pub(crate) object: Arc<Stored>,
    /// The object before the change; `None` for a new one.
    pub(crate) before: Option<Arc<Stored>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// Returns the type of a watch event.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A bounded log of changes, ordered by revision. Every watcher reads from it at its own pace.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: VecDeque<ObjectChange>,
    bytes: usize,
    /// The revision of the newest change that has been dropped.
    forgotten: u64,
    /// The revision at which the resource was defined; there were no changes before.
    start: u64,
}

impl History {
    /// Creates a history that starts at a revision, for a resource that is served from now on.
    pub(crate) fn since(revision: u64) -> Self {
        Self { start: revision, ..Self::default() }
    }

    pub(crate) fn push(&mut self, change: ObjectChange) {
        self.bytes += change.object.len();
        self.changes.push_back(change);
        while self.changes.len() > CHANGES_MAX || (self.bytes > BYTES_MAX && self.changes.len() > 1)
        {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.bytes -= oldest.object.len();
            self.forgotten = oldest.revision;
        }
    }

    /// Returns the revision of the newest change; 0 before the first one.
    pub(crate) fn latest(&self) -> u64 {
        self.changes.back().map_or(0, |it| it.revision)
    }

    /// Returns the revision from which on the history is complete: a watch cannot start before it.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.max(self.start)
    }

    /// Returns whether changes after a revision have been dropped. There were none before the start.
    pub(crate) fn lacks(&self, after: u64) -> bool {
        after < self.forgotten
    }

    /// Returns the changes after a revision, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &ObjectChange> {
        let start = self.changes.partition_point(|it| it.revision <= revision);
        self.changes.range(start..)
    }
}
