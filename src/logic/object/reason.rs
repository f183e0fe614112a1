//! The reasons of changes and the types of watch events.

use std::fmt;

/// The change of an object, in the words that handlers are declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The object has no stored state of this operator yet.
    Create,
    /// The essence differs from the stored one.
    Update,
    /// Marked for deletion, and the operator's finalizer is still on the object.
    Delete,
    /// Unchanged, but new to this process.
    Resume,
    /// Not relevant to handlers: most often the event of the operator's own PATCH.
    Noop,
    /// Marked for deletion, and without the operator's finalizer.
    Free,
    /// Already deleted from the cluster.
    Gone,
}

impl Reason {
    /// Returns the word used in kwargs and in stored progress.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Create => "create",
            Reason::Update => "update",
            Reason::Delete => "delete",
            Reason::Resume => "resume",
            Reason::Noop => "noop",
            Reason::Free => "free",
            Reason::Gone => "gone",
        }
    }

    /// Returns the noun used in log lines, for the reasons that have handlers.
    pub fn title(self) -> Option<&'static str> {
        match self {
            Reason::Create => Some("Creation"),
            Reason::Update => Some("Updating"),
            Reason::Delete => Some("Deletion"),
            Reason::Resume => Some("Resuming"),
            Reason::Noop | Reason::Free | Reason::Gone => None,
        }
    }

    /// Returns whether change handlers can run for it.
    pub fn is_handled(self) -> bool {
        self.title().is_some()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The type of a watch event that is passed to handlers; objects of a list have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}

impl EventType {
    /// Returns the type as in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}
