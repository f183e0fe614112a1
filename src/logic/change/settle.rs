//! Decides what follows from the outcomes of a cycle: whether it is done, the next wake-up, and the stored state.
//!
//! Step 7 of the walk. Before: `handling/run.rs`. After: `handling/patching.rs`.

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

/// Returns the log line about a change whose handlers have all ended.
pub fn summary(state: &State, change: &Change) -> LogLine {
    let ProgressCounts { succeeded, failed, .. } = state.counts();
    let title = change.reason.title().unwrap_or_default();
    let text = format!("{title} is processed: {succeeded} succeeded; {failed} failed.");
    LogLine { level: LogLevel::Info, text, with_trace: false }
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
