//! Determines the reason of a watch event.
//!
//! A watch event says only that *something* about an object changed. This module compares the object with the essence stored on it after
//! the last finished handling, and names the change.
//!
//! The contract is `tests/vectors/cause-detection.json` and `cause-adjustment.json`: add a row there first, then make it
//! pass. Before: `reactor/object/worker.rs`. After: `plan.rs`.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::logic::object::{
    Object,
    corrupt::CorruptState,
    diff::{self, Diff},
    diffbase, essence, fields, hidden,
    reason::{EventType, Reason},
};
use crate::settings::{FieldPath, PersistenceSettings};

/// The facts that determine the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFacts {
    /// The event reports that the object no longer exists.
    pub removed: bool,
    /// The deletion was requested.
    pub deleting: bool,
    /// The operator's finalizer is on the object.
    pub held: bool,
    /// How the object compares to the essence that was handled last.
    pub essence: Essence,
    /// The object is new to this process.
    pub initial: bool,
}

/// The comparison of an object with the essence that was handled last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Essence {
    /// No essence was handled yet.
    Absent,
    /// The essence differs from the one that was handled last.
    Changed,
    /// The essence is the same.
    Same,
}

/// Returns the reason of one event.
///
/// The order of the checks is part of the contract. `removed` comes first because a `DELETED` event carries the last state of the object,
/// which still has the operator's finalizer: checked later, it would look like [`Reason::Delete`].
pub fn detect(facts: ChangeFacts) -> Reason {
    if facts.removed {
        return Reason::Gone;
    }
    if facts.deleting {
        return if facts.held { Reason::Delete } else { Reason::Free };
    }
    match facts.essence {
        // Also after a restart: an unfinished creation stays a creation.
        Essence::Absent => Reason::Create,
        Essence::Changed => Reason::Update,
        Essence::Same if facts.initial => Reason::Resume,
        Essence::Same => Reason::Noop,
    }
}

/// A reason with everything that handlers can read about it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The reason, which selects the handlers.
    pub reason: Reason,
    /// The object is new to this process. Never true for a creation, so that resuming handlers are not called for it.
    pub initial: bool,
    /// The object is marked for deletion.
    pub deleted: bool,
    /// The essence that was handled last.
    pub old: Option<Arc<Value>>,
    /// The current essence, which is stored when the handling is finished.
    pub new: Arc<Value>,
    /// The difference from `old` to `new`; without `old`, one addition of the whole essence.
    pub diff: Arc<Diff>,
    /// Some old values may be unknown, see `object/hidden/`.
    pub has_hidden: bool,
}

/// Compares an object with the essence stored on it.
///
/// `extra` are the fields that handlers of the resource watch. Fails only if the stored essence cannot be read.
pub fn examine(
    persistence: &PersistenceSettings,
    object: &Object,
    event_type: Option<EventType>,
    initial: bool,
    extra: &BTreeSet<FieldPath>,
) -> Result<Change, CorruptState> {
    let body = object.body();
    let new = Arc::new(essence::of(persistence, body, extra));
    let storage = &persistence.diffbase_storage;
    let masked = hidden::masked(persistence, body, &new);
    let old = if diffbase::is_stored(storage, body, masked.as_ref().unwrap_or(&new)) {
        Some(Arc::clone(&new))
    } else {
        let stored = diffbase::fetch(storage, body)?;
        let stored = stored.map(|it| essence::clear(&persistence.progress_storage, it));
        stored.map(|it| Arc::new(hidden::revealed(persistence, body, it, &new)))
    };
    Ok(compare(persistence, object, event_type, initial, (old, new)))
}

/// Compares two essences, old and new, that are already known.
pub fn compare(
    persistence: &PersistenceSettings,
    object: &Object,
    event_type: Option<EventType>,
    initial: bool,
    (old, new): (Option<Arc<Value>>, Arc<Value>),
) -> Change {
    let diff = match &old {
        Some(old) if Arc::ptr_eq(old, &new) => Diff::new(),
        Some(old) => diff::diff(old, &new),
        None => diff::diff(&Value::Null, &new),
    };
    let header = object.header();
    let facts = ChangeFacts {
        removed: event_type == Some(EventType::Deleted),
        deleting: header.deletion_timestamp.is_some(),
        held: header.finalizers.contains(&persistence.finalizer),
        essence: match &old {
            None => Essence::Absent,
            Some(_) if diff.is_empty() => Essence::Same,
            Some(_) => Essence::Changed,
        },
        initial,
    };
    let reason = detect(facts);
    Change {
        reason,
        initial: initial && reason != Reason::Create,
        deleted: facts.deleting,
        old,
        new,
        diff: Arc::new(diff),
        has_hidden: persistence.hidden.is_some(),
    }
}

impl Change {
    /// Returns the change as the handlers of a field see it, and their sub-handlers, whose own fields are relative to it; without a field,
    /// the whole change. The new value is null if the field is absent.
    #[must_use]
    pub fn narrowed(&self, field: Option<&FieldPath>) -> Change {
        let Some(field) = field.filter(|it| !it.is_empty()) else { return self.clone() };
        let part = |whole: &Arc<Value>| fields::get(whole, field).cloned().map(Arc::new);
        Change {
            old: self.old.as_ref().and_then(part),
            new: part(&self.new).unwrap_or_default(),
            diff: Arc::new(diff::reduce(&self.diff, field)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
