//! Decides what to do about a change: which handlers run now, and whether the object needs the finalizer.
//!
//! Step 4 of the walk. Before: `cause/`. After: `handling/run.rs`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::state::{ProgressCounts, State};
use crate::logic::{
    handlers::{
        handler::Handler,
        outcome::{LogLevel, LogLine},
    },
    object::reason::Reason,
};

/// Maximum sleep of a worker. A longer delay is slept in parts, each of which ends with a stamp on the object, so that a dead
/// worker is noticed.
pub const SLEEP_MAX: Duration = Duration::from_mins(10);

/// The action on the operator's finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: handlers may run.
    Keep,
    /// Add it first; handlers run once it is there.
    Block,
    /// Remove it: no handler needs it any more.
    Release,
}

/// Returns the action on the finalizer. `required`: a handler must see the deletion. `blocked`: the object has the finalizer. `ongoing`:
/// the object is marked for deletion, so no finalizer can be added.
pub fn hold(required: bool, blocked: bool, ongoing: bool) -> Hold {
    match (required, blocked) {
        (true, false) if !ongoing => Hold::Block,
        (false, true) => Hold::Release,
        (true | false, _) => Hold::Keep,
    }
}

/// The log line when all is done about an object.
pub const FINISHED: &str = "Handling cycle is finished, waiting for new changes.";

/// Returns the log line for a reason that has no handlers; `None` for those that have.
pub fn unhandled(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::Gone => Some("Deleted, really deleted, and we are notified."),
        Reason::Free => Some("Deletion, but we are done with it, and we do not care."),
        Reason::Noop => {
            Some("Something has changed, but we are not interested (the essence is the same).")
        }
        Reason::Create | Reason::Update | Reason::Delete | Reason::Resume => None,
    }
}

/// The older causes that a new one supersedes.
#[derive(Debug, Default)]
pub struct Superseded {
    /// One log line for each older cause.
    pub lines: Vec<LogLine>,
    /// Progress of an older cause belongs to handlers that are not selected now: all progress must be purged first.
    pub left_over: bool,
}

/// Assigns the progress of the selected handlers to this cause. Returns which causes it supersedes.
pub fn begin(
    state: &mut State,
    reason: Reason,
    selected: &[Arc<Handler>],
    now: Timestamp,
) -> Superseded {
    state.begin(reason, selected.iter().map(|it| &it.id), now);
    let current = reason.title().unwrap_or_default().to_lowercase();
    let lines = state.superseded().into_iter().map(|(purpose, counts)| {
        let ProgressCounts { succeeded, failed, left } = counts;
        let old = title(&purpose);
        let text = format!(
            "{old} is superseded by {current}: {succeeded} succeeded; {failed} failed; {left} left to the moment."
        );
        LogLine { level: LogLevel::Info, text, with_trace: false }
    });
    let lines = lines.collect();
    state.repurpose();
    Superseded { lines, left_over: !state.superseded().is_empty() }
}

/// Returns the selected handlers that are neither finished nor waiting. Handlers that were `edited` meanwhile do not wait.
pub fn due(
    state: &State,
    selected: &[Arc<Handler>],
    edited: &BTreeSet<Arc<str>>,
    now: Timestamp,
) -> Vec<Arc<Handler>> {
    let is_edited = |id: &Arc<str>| edited.contains(id) && state.delay(id, now).is_some();
    let is_due = |it: &&Arc<Handler>| state.awakened(&it.id, now) || is_edited(&it.id);
    selected.iter().filter(is_due).cloned().collect()
}

fn title(purpose: &str) -> String {
    let reasons = [Reason::Create, Reason::Update, Reason::Delete, Reason::Resume];
    let known = reasons.into_iter().find(|it| it.as_str() == purpose).and_then(Reason::title);
    known.map_or_else(|| format!("'{purpose}'"), str::to_owned)
}
