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
pub const QUIET: Duration = Duration::from_millis(15);

/// Whatever happens, somebody looks after so long: a file may stay open for ever, and some are saved again and again.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// What happened to a file last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound {
    /// It was written to, and is not closed yet.
    Written,
    /// It is whole again, or it went, or something else happened.
    Other,
}

/// Changes since the last look.
#[derive(Debug)]
pub struct Settling {
    first: Instant,
    last: Instant,
    /// Somebody is writing there.
    open: BTreeSet<PathBuf>,
}

impl Settling {
    /// Something was heard, or somebody wants to look.
    pub fn begin(now: Instant) -> Self {
        Settling { first: now, last: now, open: BTreeSet::new() }
    }

    /// More was heard.
    pub fn hear(&mut self, sounds: BTreeMap<PathBuf, Sound>, now: Instant) {
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

    /// When to look, if nothing more is heard.
    pub fn due(&self) -> Instant {
        if self.open.is_empty() {
            self.deadline().min(self.last + QUIET)
        } else {
            self.deadline()
        }
    }

    /// When to take things as they are.
    pub fn deadline(&self) -> Instant {
        self.first + PATIENCE
    }
}
