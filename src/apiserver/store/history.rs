//! The changes of one resource, as far as they are remembered.

use std::{collections::VecDeque, sync::Arc};

use tokio::time::Instant;

use crate::store::stored::Stored;

/// Changes remembered per resource. More than any client makes between two turns of a watcher; who falls behind gets a 410, as
/// with the real server.
const CHANGES_MAX: usize = 10_000;

/// Bytes of objects remembered per resource: a few big objects that change often must not fill the memory.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// What happened to an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    /// When watchers may see it.
    pub(crate) due: Instant,
    pub(crate) kind: ChangeKind,
    /// The object with this change; for a removal, as it was before, with the new version.
    pub(crate) object: Arc<Stored>,
    /// The object without this change.
    pub(crate) before: Option<Arc<Stored>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// As in the lines of a watch.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A bounded log, ordered by revision. Every watcher reads from it at its own pace.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: VecDeque<Change>,
    bytes: usize,
    /// The newest change that is forgotten already.
    forgotten: u64,
    /// What there was to watch began here.
    start: u64,
}

impl History {
    /// Knows nothing of what was before.
    pub(crate) fn since(revision: u64) -> Self {
        Self { start: revision, ..Self::default() }
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.bytes += change.object.len();
        self.changes.push_back(change);
        while self.changes.len() > CHANGES_MAX || (self.bytes > BYTES_MAX && self.changes.len() > 1)
        {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.bytes -= oldest.object.len();
            self.forgotten = oldest.revision;
        }
    }

    /// The revision of the newest change; 0 before the first one.
    pub(crate) fn latest(&self) -> u64 {
        self.changes.back().map_or(0, |it| it.revision)
    }

    /// The newest change that is forgotten: who has not seen it cannot catch up.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.max(self.start)
    }

    /// Whether changes after a revision are forgotten; before the start there were none.
    pub(crate) fn lacks(&self, after: u64) -> bool {
        after < self.forgotten
    }

    /// The changes after a revision, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Change> {
        let start = self.changes.partition_point(|it| it.revision <= revision);
        self.changes.range(start..)
    }
}
