//! The changes of one resource, as far as they are remembered.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;
use tokio::time::Instant;

/// Changes remembered per resource. More than any test makes between two turns of a watcher; who falls behind gets a 410, as
/// with the real server.
const CHANGES_MAX: usize = 10_000;

/// What happened to an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    /// When watchers may see it.
    pub(crate) due: Instant,
    pub(crate) kind: ChangeKind,
    /// The object with this change; for a removal, as it was before, with the new version.
    pub(crate) object: Arc<Value>,
    /// The object without this change.
    pub(crate) before: Option<Arc<Value>>,
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
    /// The newest change that is forgotten already.
    forgotten: u64,
}

impl History {
    pub(crate) fn push(&mut self, change: Change) {
        if self.changes.len() == CHANGES_MAX
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.revision;
        }
        self.changes.push_back(change);
    }

    /// The newest change that is forgotten: who has not seen it cannot catch up.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The changes after a revision, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let start = self.changes.partition_point(|it| it.revision <= revision);
        self.changes.iter().skip(start)
    }
}
