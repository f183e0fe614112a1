//! The step from one generation of scripts to the next: which handlers differ, and how that affects objects that do not change.
//!
//! | file | decides |
//! |---|---|
//! | `mod.rs` | which handlers differ |
//! | `version.rs` | which handlers came before which |
//! | `recheck/mod.rs` | which objects the new handlers must see |
//! | `retries.rs` | which handlers no longer wait for their retry |
//!
//! How an edit affects everything that is running: `reactor/generation/mod.rs`.

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
use crate::logic::{
    change::registry::Registry,
    handlers::{handler::Handler, lifecycle::Chooser},
    text::listed::listed,
};

/// The content of all scripts after one load: loaded together, replaced together, never changed.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// The version, set at the takeover; ordered among all generations of the operator.
    pub version: Version,
    /// The handlers that its scripts have declared.
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

/// Maximum number of handlers to list in a log line, for each kind of difference.
const LISTED_MAX: usize = 20;

/// The differences between the handlers of one generation and those of the one before, by declaration and id.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Handlers that did not exist before.
    pub added: Vec<Arc<Handler>>,
    /// Handlers that existed before with other code or other options, in their new form.
    pub changed: Vec<Arc<Handler>>,
    /// Handlers that no longer exist, in their old form.
    pub removed: Vec<Arc<Handler>>,
}

impl Changes {
    /// Compares two registries. Handlers that share declaration and id are compared in their order.
    pub fn between(old: &Registry, new: &Registry) -> Self {
        let mut left: Vec<_> = old.handlers().iter().map(Some).collect();
        let mut changes = Changes::default();
        for handler in new.handlers() {
            // First look for the same handler, only then for one with the same declaration and id.
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

    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl fmt::Display for Changes {
    /// Formats like `added timer 'tick'; changed on_create 'create', on_update 'fn'; removed daemon 'watch'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no handler differs");
        }
        let parts =
            [("added", &self.added), ("changed", &self.changed), ("removed", &self.removed)];
        let mut separator = "";
        for (verb, handlers) in parts {
            // Those of a reconcile handler change with it.
            let handlers: Vec<_> = handlers.iter().filter(|it| it.relation.is_none()).collect();
            if handlers.is_empty() {
                continue;
            }
            let named = handlers.iter().map(|it| format!("{} '{}'", it.kind.declared_by(), it.id));
            write!(f, "{separator}{verb} {}", listed(named, LISTED_MAX))?;
            separator = "; ";
        }
        Ok(())
    }
}
