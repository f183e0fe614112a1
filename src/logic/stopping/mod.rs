//! Why and how a daemon or a timer must stop.
//!
//! The contract is `tests/vectors/daemon-stopping.json`. [`StopReasons`] are what its script sees; [`step`] and [`linear`]
//! decide how hard it is pressed.

mod stages;
#[cfg(test)]
mod tests;

pub use self::stages::{Patience, Stage, graceful, linear, step};

use std::fmt;

/// One reason, or one stage of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum StopReason {
    /// The task has ended.
    Done = 1,
    /// The object does not match the filters any more.
    FiltersMismatch = 1 << 1,
    /// The object is being deleted, or is gone.
    ResourceDeleted = 1 << 2,
    /// A stronger operator is at work.
    OperatorPausing = 1 << 3,
    /// The operator is ending.
    OperatorExiting = 1 << 4,
    /// It was asked to exit gracefully.
    DaemonSignalled = 1 << 5,
    /// It was told to exit by force.
    DaemonCancelled = 1 << 6,
    /// It did not exit in time and is not waited for any more.
    DaemonAbandoned = 1 << 7,
    /// Its function or its options have changed, or it is not declared any more. Kopf has no such reason, for it cannot reload.
    ScriptReloaded = 1 << 8,
}

/// All of them, in the order of their names in [`StopReasons`].
const ALL: &[StopReason] = &[
    StopReason::Done,
    StopReason::FiltersMismatch,
    StopReason::ResourceDeleted,
    StopReason::OperatorPausing,
    StopReason::OperatorExiting,
    StopReason::ScriptReloaded,
    StopReason::DaemonSignalled,
    StopReason::DaemonCancelled,
    StopReason::DaemonAbandoned,
];

/// A set of reasons: they accumulate and are never taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopReasons(u16);

impl StopReason {
    /// As scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Done => "DONE",
            StopReason::FiltersMismatch => "FILTERS_MISMATCH",
            StopReason::ResourceDeleted => "RESOURCE_DELETED",
            StopReason::OperatorPausing => "OPERATOR_PAUSING",
            StopReason::OperatorExiting => "OPERATOR_EXITING",
            StopReason::DaemonSignalled => "DAEMON_SIGNALLED",
            StopReason::DaemonCancelled => "DAEMON_CANCELLED",
            StopReason::DaemonAbandoned => "DAEMON_ABANDONED",
            StopReason::ScriptReloaded => "SCRIPT_RELOADED",
        }
    }

    /// The reason of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|it| it.as_str() == name)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|it| it.as_str())
    }
}

impl StopReasons {
    /// Those whose bits are set.
    pub fn from_bits(bits: u16) -> Self {
        StopReasons(bits)
    }

    /// One bit for each.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Whether there is none: nobody was asked to stop.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has not ended yet, but was asked to.
    pub fn is_stopping(self) -> bool {
        !self.is_empty() && !self.contains(StopReason::Done)
    }

    /// Whether this one is among them.
    pub fn contains(self, reason: StopReason) -> bool {
        self.0 & reason as u16 != 0
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, reason: StopReason) -> Self {
        StopReasons(self.0 | reason as u16)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = StopReason> {
        ALL.iter().copied().filter(move |it| self.contains(*it))
    }
}

impl fmt::Display for StopReasons {
    /// Names with `|` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "|" };
            write!(f, "{separator}{}", reason.as_str())?;
        }
        Ok(())
    }
}
