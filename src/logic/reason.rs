//! The names of what can happen to an object.

use std::fmt;

/// What happened to an object, in the words handlers are declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing of ours is stored on the object yet.
    Create,
    /// The essence differs from the stored one.
    Update,
    /// Marked for deletion, and our finalizer still holds the object.
    Delete,
    /// Unchanged, but new to this process.
    Resume,
    /// Nothing for handlers: most often our own PATCH coming back.
    Noop,
    /// Marked for deletion, and we no longer hold it.
    Free,
    /// Already removed from the cluster.
    Gone,
}

impl Reason {
    /// The word used in kwargs and in stored progress.
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

    /// The noun used in log lines, for the reasons that have handlers.
    pub fn title(self) -> Option<&'static str> {
        match self {
            Reason::Create => Some("Creation"),
            Reason::Update => Some("Updating"),
            Reason::Delete => Some("Deletion"),
            Reason::Resume => Some("Resuming"),
            Reason::Noop | Reason::Free | Reason::Gone => None,
        }
    }

    /// Whether change handlers can run for it.
    pub fn is_handled(self) -> bool {
        self.title().is_some()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The type of a watch event that reaches handlers; objects of a listing have none.
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
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}
