//! Why did this object reach us?
//!
//! A watch event says only that *something* about an object changed. Here we compare the object with what we stored on
//! it after the last finished handling, and give the change a name.
//!
//! The contract is `tests/vectors/cause-detection.json` and `cause-adjustment.json`: add a row there first, then make it
//! pass. Before: `reactor/worker.rs`. After: `plan.rs`.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    corrupt::CorruptState,
    diff::{self, Diff},
    diffbase, essence, fields,
    object::Object,
    reason::{EventType, Reason},
};
use crate::settings::{FieldPath, Persistence};

/// All that the reason depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The event says that the object is no more.
    pub removed: bool,
    /// Somebody asked for the deletion.
    pub deleting: bool,
    /// Our finalizer is on the object.
    pub held: bool,
    /// How the object compares to what was handled last.
    pub essence: Essence,
    /// The object is new to this process.
    pub initial: bool,
}

/// How an object compares to what was handled last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Essence {
    /// Nothing was handled yet.
    Absent,
    /// It differs.
    Changed,
    /// It does not differ.
    Same,
}

/// Names the reason behind one event.
///
/// The order of the checks is part of the contract. `removed` comes first because a `DELETED` event carries the last
/// state of the object, which still shows our finalizer: asked later, it would look like [`Reason::Delete`].
pub fn detect(facts: Facts) -> Reason {
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

/// A reason with all that handlers may ask about it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its name.
    pub reason: Reason,
    /// The object is new to this process. Never true of a creation, so that resuming handlers stay out of it.
    pub initial: bool,
    /// The object is marked for deletion.
    pub deleted: bool,
    /// The essence that was handled last.
    pub old: Option<Arc<Value>>,
    /// The present essence; this is what is stored when the handling is finished.
    pub new: Arc<Value>,
    /// From `old` to `new`; one addition of everything if there is no `old`.
    pub diff: Arc<Diff>,
}

/// A change as the handlers of one field see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrowed {
    /// The old value of the field; `None` if it was absent.
    pub old: Option<Arc<Value>>,
    /// The new value of the field; `None` if it is absent.
    pub new: Option<Arc<Value>>,
    /// The changes below the field.
    pub diff: Arc<Diff>,
}

/// Compares an object with the essence stored on it.
///
/// `extra` are the fields that handlers of the resource watch. Fails only when the stored essence cannot be read.
pub fn examine(
    persistence: &Persistence,
    object: &Object,
    event_type: Option<EventType>,
    initial: bool,
    extra: &BTreeSet<FieldPath>,
) -> Result<Change, CorruptState> {
    let body = object.body();
    let new = Arc::new(essence::of(persistence, body, extra));
    let storage = &persistence.diffbase_storage;
    let old = if diffbase::is_stored(storage, body, &new) {
        Some(Arc::clone(&new))
    } else {
        let stored = diffbase::fetch(storage, body)?;
        stored.map(|it| Arc::new(essence::clear(&persistence.progress_storage, it)))
    };
    Ok(compare(persistence, object, event_type, initial, (old, new)))
}

/// The same for two essences, old and new, that are known already.
pub fn compare(
    persistence: &Persistence,
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
    let facts = Facts {
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
    }
}

impl Change {
    /// The change as seen from a field; from nowhere, it is the whole change.
    ///
    /// The narrowed change of a parent is what its sub-handlers see, so their own fields are relative to its field.
    pub fn narrowed(&self, field: Option<&FieldPath>) -> Narrowed {
        let whole = Narrowed {
            old: self.old.clone(),
            new: Some(Arc::clone(&self.new)),
            diff: Arc::clone(&self.diff),
        };
        whole.narrowed(field)
    }
}

impl Change {
    /// The change as the sub-handlers of a handler of this field see it.
    #[must_use]
    pub fn below(&self, field: Option<&FieldPath>) -> Change {
        let Narrowed { old, new, diff } = self.narrowed(field);
        Change { old, new: new.unwrap_or_default(), diff, ..self.clone() }
    }
}

impl Narrowed {
    /// The same change from one more field down.
    #[must_use]
    pub fn narrowed(&self, field: Option<&FieldPath>) -> Narrowed {
        let Some(field) = field.filter(|it| !it.is_empty()) else { return self.clone() };
        let part = |whole: &Arc<Value>| fields::get(whole, field).cloned().map(Arc::new);
        Narrowed {
            old: self.old.as_ref().and_then(part),
            new: self.new.as_ref().and_then(part),
            diff: Arc::new(diff::reduce(&self.diff, field)),
        }
    }
}

#[cfg(test)]
mod tests;
