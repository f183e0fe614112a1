//! When a burst of changes is over.
//!
//! Editors make several steps of one save, and tools save many files. What was heard of the files decides how long to wait: a
//! rename, or a file that was closed after writing, is most likely the last step; a file that is open for writing is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Nothing more is expected after so long. The steps of a save follow each other within a millisecond, also on a busy machine.
pub(super) const QUIET: Duration = Duration::from_millis(15);

/// The same for what comes through the API: several objects of one `kubectl apply` are one save.
pub(super) const QUIET_API: Duration = Duration::from_millis(100);

/// Whatever happens, somebody looks after so long: a file may stay open for ever, and some are saved again and again.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// What happened to a file last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sound {
    /// It was written to, and is not closed yet.
    Written,
    /// It is whole again, or it went, or something else happened.
    Other,
}

/// Changes since the last look.
#[derive(Debug)]
pub(super) struct Settling {
    first: Instant,
    last: Instant,
    quiet: Duration,
    /// Somebody is writing there.
    open: BTreeSet<PathBuf>,
}

impl Settling {
    /// Something was heard, or somebody wants to look.
    pub(super) fn begin(now: Instant) -> Self {
        Settling { first: now, last: now, quiet: QUIET, open: BTreeSet::new() }
    }

    /// More was heard.
    pub(super) fn hear(&mut self, sounds: BTreeMap<PathBuf, Sound>, now: Instant) {
        if !sounds.is_empty() {
            self.last = now;
        }
        for (path, sound) in sounds {
            match sound {
                Sound::Written => self.open.insert(path),
                Sound::Other => self.open.remove(&path),
            };
        }
    }

    /// Something came through the API.
    pub(super) fn hear_api(&mut self, now: Instant) {
        self.last = now;
        self.quiet = QUIET_API;
    }

    /// When to look, if nothing more is heard.
    pub(super) fn due(&self) -> Instant {
        if self.open.is_empty() {
            self.deadline().min(self.last + self.quiet)
        } else {
            self.deadline()
        }
    }

    /// When to take things as they are.
    pub(super) fn deadline(&self) -> Instant {
        self.first + PATIENCE
    }
}
