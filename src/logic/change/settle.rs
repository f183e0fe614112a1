//! Decides what follows from the outcomes of a cycle: whether it is done, the next wake-up, and the stored state.
//!
//! Step 7 of the walk. Before: `handling/run.rs`. After: `handling/patching.rs`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    cause::Change,
    state::{ProgressCounts, State},
};
use crate::logic::{
    handlers::outcome::{LogLevel, LogLine},
    object::{diffbase, hidden},
};
use crate::settings::PersistenceSettings;

/// The result of a cycle for its change.
#[derive(Debug, Default)]
pub struct Settlement {
    /// Log lines of the object.
    pub lines: Vec<LogLine>,
    /// The pauses until the unfinished handlers are due.
    pub delays: Vec<Duration>,
    /// Every handler has ended, or there was none: the change is finished.
    pub done: bool,
}

/// Settles a change. `skipped`: no handler was selected for it.
pub fn change(state: &State, change: &Change, skipped: bool, now: Timestamp) -> Settlement {
    if skipped {
        return Settlement { done: true, ..Settlement::default() };
    }
    if !state.done() {
        return Settlement { delays: state.delays(now), ..Settlement::default() };
    }
    let ProgressCounts { succeeded, failed, .. } = state.counts();
    let title = change.reason.title().unwrap_or_default();
    let text = format!("{title} is processed: {succeeded} succeeded; {failed} failed.");
    let line = LogLine { level: LogLevel::Info, text, with_trace: false };
    Settlement { lines: vec![line], delays: Vec::new(), done: true }
}

/// Stores the essence as handled, unless the same is already stored.
pub fn remember(
    persistence: &PersistenceSettings,
    body: &Value,
    change: &Change,
    patch: &mut Map<String, Value>,
) {
    if change.old.is_none() || !change.diff.is_empty() || is_exposed(persistence, body) {
        let masked = hidden::masked(persistence, body, &change.new);
        let essence = masked.as_ref().unwrap_or(&change.new);
        diffbase::store(&persistence.diffbase_storage, body, essence, patch);
    }
}

/// Returns whether the stored essence has values that must not be stored: an earlier operator has stored them.
pub fn is_exposed(persistence: &PersistenceSettings, body: &Value) -> bool {
    if persistence.hidden.is_none() {
        return false;
    }
    // A state that cannot be read is reported elsewhere.
    let stored = diffbase::fetch(&persistence.diffbase_storage, body).ok().flatten();
    stored.is_some_and(|it| hidden::is_exposed(persistence, &it))
}
