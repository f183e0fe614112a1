//! One generation of scripts and the next: what an edit changes, and what it means for objects for which nothing happens.
//!
//! | file | decides |
//! |---|---|
//! | `mod.rs` | which handlers differ |
//! | `version.rs` | which handlers came before which |
//! | `recheck/mod.rs` | which objects the new handlers must see |
//! | `retries.rs` | which handlers need not wait for their retry any longer |
//!
//! What becomes of everything that runs: `reactor/generation/mod.rs`.

mod recheck;
mod retries;
#[cfg(test)]
mod tests;
mod version;

use std::{fmt, sync::Arc};

pub use self::{
    recheck::{NewHandlers, Recheck, has_new, refilled},
    retries::WaitingHandlers,
    version::Version,
};
use super::{handler::Handler, lifecycle::Chooser, registry::Registry};

/// What all scripts declare together: loaded together, taken together, never changed.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// When it took over, among all generations of the operator.
    pub version: Version,
    /// The handlers.
    pub registry: Registry,
    /// The default lifecycle, if a script sets it.
    pub lifecycle: Option<Chooser>,
}

impl Generation {
    /// Returns a candidate: its version is set when it takes over.
    pub fn new(registry: Registry, lifecycle: Option<Chooser>) -> Self {
        Generation { registry, lifecycle, ..Generation::default() }
    }
}

/// How the handlers of one generation differ from those of the one before, by declaration and id.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Not there before.
    pub added: Vec<Arc<Handler>>,
    /// There before with other code or other options; as they are now.
    pub changed: Vec<Arc<Handler>>,
    /// Not there any more; as they were.
    pub removed: Vec<Arc<Handler>>,
}

impl Changes {
    /// Compares. Handlers that share declaration and id are compared in the order they have.
    pub fn between(old: &Registry, new: &Registry) -> Self {
        let mut left: Vec<_> = old.handlers().iter().map(Some).collect();
        let mut changes = Changes::default();
        for handler in new.handlers() {
            // The very same first: only then one of the same name.
            let mut take = |is_it: &dyn Fn(&Handler) -> bool| {
                left.iter_mut().find(|it| it.is_some_and(|it| is_it(it)))?.take()
            };
            if take(&|it| it.is_same(handler)).is_some() {
            } else if take(&|it| it.is_namesake(handler)).is_some() {
                changes.changed.push(Arc::clone(handler));
            } else {
                changes.added.push(Arc::clone(handler));
            }
        }
        changes.removed = left.into_iter().flatten().map(Arc::clone).collect();
        changes
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl fmt::Display for Changes {
    /// `added timer 'tick'; changed on_create 'create', on_update 'fn'; removed daemon 'watch'`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no handler differs");
        }
        let parts =
            [("added", &self.added), ("changed", &self.changed), ("removed", &self.removed)];
        let mut separator = "";
        for (verb, handlers) in parts.into_iter().filter(|(_, it)| !it.is_empty()) {
            write!(f, "{separator}{verb} ")?;
            for (index, handler) in handlers.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(f, "{comma}{} '{}'", handler.kind.declared_by(), handler.id)?;
            }
            separator = "; ";
        }
        Ok(())
    }
}
