//! What an edit means for handlers that wait for their retry: who mends a handler wants to see the effect now, not when the
//! delay of the broken one is over.
//!
//! The record on the cluster stays as it is until the handler was called: another process would wait.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::logic::{
    handler::{Handler, Mark},
    state::State,
};

/// The handlers of one object that wait for their next attempt, as they were when the wait began or was first seen.
#[derive(Debug, Default)]
pub struct Waiting(Vec<Mark>);

impl Waiting {
    /// The ids of those handlers that were edited since they began to wait: they need not wait any longer.
    pub fn edited(&self, handlers: &[Arc<Handler>]) -> BTreeSet<Arc<str>> {
        let is_edited = |handler: &&Arc<Handler>| {
            let mark = self.0.iter().find(|it| it.is_namesake_of(handler));
            mark.is_some_and(|it| !it.is_of(handler))
        };
        handlers.iter().filter(is_edited).map(|it| Arc::clone(&it.id)).collect()
    }

    /// Notes who waits after a cycle, and forgets all others. `called`: those that the cycle has called, as they are now.
    pub fn note(
        &mut self,
        state: &State,
        selected: &[Arc<Handler>],
        called: &[Arc<Handler>],
        now: Timestamp,
    ) {
        let known = std::mem::take(&mut self.0);
        let waits = |it: &&Arc<Handler>| state.delay(&it.id, now) > Some(Duration::ZERO);
        self.0.extend(selected.iter().filter(waits).map(|handler| {
            let is_called = called.iter().any(|it| Arc::ptr_eq(it, handler));
            let mark = known.iter().find(|it| !is_called && it.is_namesake_of(handler));
            mark.cloned().unwrap_or_else(|| handler.mark())
        }));
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
