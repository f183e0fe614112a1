//! Determines which handlers no longer wait for their retry: a fix takes effect at once, not after the delay of the broken handler.
//!
//! The record on the cluster is unchanged until the handler is called, so another process would wait.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::logic::{
    change::state::State,
    handlers::handler::{Handler, Mark},
};
use crate::sorted::CollectSorted as _;

/// The handlers of one object that wait for their next attempt, in the form they had when the wait began or was first seen.
#[derive(Debug, Default)]
pub struct WaitingHandlers(Vec<Mark>);

impl WaitingHandlers {
    /// Returns the ids of the handlers that were edited since they began to wait.
    pub fn edited(&self, handlers: &[Arc<Handler>]) -> BTreeSet<Arc<str>> {
        let is_edited = |handler: &&Arc<Handler>| {
            let mark = self.0.iter().find(|it| it.is_namesake_of(handler));
            mark.is_some_and(|it| !it.is_of(handler))
        };
        handlers.iter().filter(is_edited).map(|it| Arc::clone(&it.id)).collect_set()
    }

    /// Records which handlers wait after a cycle, and removes all others. `called`: the handlers that the cycle called, in their
    /// current form.
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

    /// Returns whether no handler waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
