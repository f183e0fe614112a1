//! Decides when a burst of changes is over.
//!
//! Editors save in several steps, and tools save many files. The events of the files decide how long to wait: a rename, or a file
//! that was closed after writing, is most likely the last step; a file that is open for writing is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// A burst is over after this much quiet time. The steps of a save follow each other within a millisecond, also on a busy machine.
pub(super) const QUIET: Duration = Duration::from_millis(15);

/// The same for changes from the API: several objects of one `kubectl apply` are one save.
pub(super) const QUIET_API: Duration = Duration::from_millis(100);

/// Maximum wait: a file may stay open permanently, and some are saved again and again.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(500);

/// The last event of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FsEvent {
    /// The file was written to, and is not closed yet.
    Written,
    /// The file was closed or removed, or any other event.
    Other,
}

/// Changes since the last read.
#[derive(Debug)]
pub(super) struct Settling {
    first: Instant,
    last: Instant,
    quiet: Duration,
    /// The files that are open for writing.
    open: BTreeSet<PathBuf>,
}

impl Settling {
    /// Creates the state after the first change, at this time.
    pub(super) fn begin(now: Instant) -> Self {
        Settling { first: now, last: now, quiet: QUIET, open: BTreeSet::new() }
    }

    /// Adds events of files.
    pub(super) fn add_events(&mut self, events: BTreeMap<PathBuf, FsEvent>, now: Instant) {
        if !events.is_empty() {
            self.last = now;
        }
        for (path, event) in events {
            match event {
                FsEvent::Written => self.open.insert(path),
                FsEvent::Other => self.open.remove(&path),
            };
        }
    }

    /// Adds a change from the API.
    pub(super) fn add_api_change(&mut self, now: Instant) {
        self.last = now;
        self.quiet = QUIET_API;
    }

    /// Returns when to read if no further events arrive.
    pub(super) fn due(&self) -> Instant {
        if self.open.is_empty() {
            self.deadline().min(self.last + self.quiet)
        } else {
            self.deadline()
        }
    }

    /// Returns the latest time to read.
    pub(super) fn deadline(&self) -> Instant {
        self.first + WAIT_MAX
    }
}
