//! The reasons and stages of stopping, and sets of them.

use std::fmt;

/// A reason, or a stage, of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum StopReason {
    /// The task has ended.
    Done = 1,
    /// The object no longer matches the filters.
    FiltersMismatch = 1 << 1,
    /// The object is being deleted, or is gone.
    ResourceDeleted = 1 << 2,
    /// An operator with a higher priority is active.
    OperatorPausing = 1 << 3,
    /// The operator is exiting.
    OperatorExiting = 1 << 4,
    /// It was requested to exit gracefully.
    DaemonSignalled = 1 << 5,
    /// It was cancelled.
    DaemonCancelled = 1 << 6,
    /// It did not exit in time, and the operator no longer waits for it.
    DaemonAbandoned = 1 << 7,
    /// Its function or its options have changed, or it is no longer declared. Kopf has no such reason, because it cannot reload.
    ScriptReloaded = 1 << 8,
}

/// All reasons, in the order in which [`StopReasons`] formats them.
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

/// A set of reasons: they accumulate and are never removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopReasons(u16);

impl StopReason {
    /// Returns the name that scripts see.
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

    /// Returns the reason of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|it| it.as_str() == name)
    }

    /// Returns the names of all reasons, as scripts see them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|it| it.as_str())
    }
}

impl StopReasons {
    /// Creates a set from its bits.
    pub fn from_bits(bits: u16) -> Self {
        StopReasons(bits)
    }

    /// Returns the set as bits, one for each reason.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns whether there is no reason: nothing was requested to stop.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether it was requested to stop, but has not ended yet.
    pub fn is_stopping(self) -> bool {
        !self.is_empty() && !self.contains(StopReason::Done)
    }

    /// Returns whether the set contains this reason.
    pub fn contains(self, reason: StopReason) -> bool {
        self.0 & reason as u16 != 0
    }

    /// Returns the set with one more reason.
    #[must_use]
    pub fn with(self, reason: StopReason) -> Self {
        StopReasons(self.0 | reason as u16)
    }

    /// Returns the reasons in this set.
    pub fn iter(self) -> impl Iterator<Item = StopReason> {
        ALL.iter().copied().filter(move |it| self.contains(*it))
    }
}

impl fmt::Display for StopReasons {
    /// Formats the names, separated by `|`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "|" };
            write!(f, "{separator}{}", reason.as_str())?;
        }
        Ok(())
    }
}
