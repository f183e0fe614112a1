//! A patch under construction: the changes that one cycle makes to its object.
//!
//! The contract is `tests/vectors/json-patches.json`. The merge-patch is sent unchanged; transformations are applied to the latest
//! known body, and the difference is sent as operations. After: `handling/patching.rs`.

use std::{fmt, sync::Arc};

use json_patch::PatchOperation;
use kopf_json::values;
use serde_json::{Map, Value, json};

use crate::logic::{
    handlers::function::Function,
    object::{
        conditions::ConditionChange,
        diff::{self, Diff, DiffScope},
        fields,
    },
};

mod authors;
mod overlay;

pub use self::{authors::Authors, overlay::Overlay};

/// The fields that servers drop when they are empty.
const DROPPED_WHEN_EMPTY: [[&str; 2]; 3] =
    [["metadata", "annotations"], ["metadata", "labels"], ["metadata", "finalizers"]];

/// A merge-patch and functions over the raw body, sent when the cycle ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// RFC 7386: nulls delete.
    pub merge: Map<String, Value>,
    /// Applied in order to the latest known body; the difference is sent as an RFC 6902 patch.
    pub transformations: Vec<Transformation>,
    /// Their changes outside of the status were already accepted: only their part of the status is still to be sent.
    pub is_main_applied: bool,
}

/// One function over the raw body. Idempotent: after a conflict it is applied again.
#[derive(Clone, Debug, PartialEq)]
pub enum Transformation {
    /// Add this finalizer.
    BlockDeletion(Arc<str>),
    /// Remove this finalizer.
    AllowDeletion(Arc<str>),
    /// A function that a script has appended to `ctx.patch.fns`.
    Scripted(Function),
    /// A change that a script has made by `ctx.conditions`.
    Condition(Arc<ConditionChange>),
}

impl fmt::Display for Transformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transformation::BlockDeletion(finalizer) => write!(f, "add the finalizer {finalizer}"),
            Transformation::AllowDeletion(finalizer) => {
                write!(f, "remove the finalizer {finalizer}")
            }
            Transformation::Scripted(_) => f.write_str("a function of patch.fns"),
            Transformation::Condition(change) => match &**change {
                ConditionChange::Set(it) => write!(f, "set the condition {}", it.kind),
                ConditionChange::Remove(kind) => write!(f, "remove the condition {kind}"),
            },
        }
    }
}

impl Transformation {
    /// Returns whether it belongs to the operator itself, and not to a script.
    pub fn is_own(&self) -> bool {
        match self {
            Transformation::BlockDeletion(_) | Transformation::AllowDeletion(_) => true,
            Transformation::Scripted(_) | Transformation::Condition(_) => false,
        }
    }
}

impl Patch {
    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.transformations.is_empty()
    }

    /// Adds a newer patch, to be sent after the existing content.
    pub fn add(&mut self, newer: Patch) {
        compose(&mut self.merge, newer.merge);
        for transformation in newer.transformations {
            match transformation {
                Transformation::Condition(change) => {
                    self.change_condition(ConditionChange::clone(&change));
                }
                it @ (Transformation::BlockDeletion(_)
                | Transformation::AllowDeletion(_)
                | Transformation::Scripted(_)) => self.transformations.push(it),
            }
        }
    }

    /// Changes a condition. Replaces an earlier change of it, so that a status that is set back does not count as changed.
    pub fn change_condition(&mut self, change: ConditionChange) {
        let kind = change.kind();
        let earlier = self.transformations.iter().position(
            |it| matches!(it, Transformation::Condition(earlier) if earlier.kind() == kind),
        );
        let change = Transformation::Condition(Arc::new(change));
        match earlier.and_then(|it| self.transformations.get_mut(it)) {
            Some(place) => *place = change,
            None => self.transformations.push(change),
        }
    }

    /// Returns the conditions of an object as they will be after this patch is sent, in a body without other fields.
    ///
    /// Functions of scripts are not included: they are called when the patch is sent.
    pub fn conditions_of(&self, body: &Value) -> Value {
        let place = ["status", "conditions"];
        let in_patch = fields::get_in(&self.merge, &place);
        let list = in_patch.or_else(|| fields::get(body, &place)).cloned().unwrap_or_default();
        let mut shown = json!({ "status": { "conditions": list } });
        for transformation in &self.transformations {
            match transformation {
                Transformation::Condition(change) => change.apply(&mut shown),
                Transformation::BlockDeletion(_)
                | Transformation::AllowDeletion(_)
                | Transformation::Scripted(_) => {}
            }
        }
        shown
    }

    /// Removes what servers reject for objects that are being deleted: new finalizers.
    pub fn admit_deletion(&mut self) {
        self.transformations.retain(|it| !matches!(it, Transformation::BlockDeletion(_)));
    }
}

/// Adds a finalizer if it is absent. A value that is not a list of finalizers is replaced by one.
pub fn block_deletion(body: &mut Value, finalizer: &str) {
    let path = ["metadata", "finalizers"];
    let Some(body) = body.as_object_mut() else { return };
    let present = fields::get_in(body, &path).and_then(Value::as_array);
    if present.is_some_and(|it| it.iter().any(|it| it == finalizer)) {
        return;
    }
    let finalizers = present.into_iter().flatten().cloned().chain([finalizer.into()]).collect();
    fields::put(body, &path, Value::Array(finalizers));
}

/// Removes all occurrences of a finalizer, and the list and maps that become empty.
pub fn allow_deletion(body: &mut Value, finalizer: &str) {
    let path = ["metadata", "finalizers"];
    let Some(body) = body.as_object_mut() else { return };
    let Some(present) = fields::get_in(body, &path).and_then(Value::as_array) else { return };
    let left: Vec<Value> = present.iter().filter(|it| *it != finalizer).cloned().collect();
    if left.is_empty() {
        // The list exists, so everything above it is a map.
        fields::remove(body, &path).unwrap_or_default();
    } else if left.len() != present.len() {
        fields::put(body, &path, Value::Array(left));
    }
}

/// Adds a newer merge-patch to one that was not sent yet.
///
/// Not exactly the same as sending both: where the older one removes a map and the newer one fills it, its old content stays.
pub fn compose(older: &mut Map<String, Value>, newer: Map<String, Value>) {
    for (key, value) in newer {
        match (older.get_mut(&key), value) {
            (Some(Value::Object(present)), Value::Object(more)) => compose(present, more),
            (_, value) => drop(older.insert(key, value)),
        }
    }
}

/// Applies a merge-patch for a conversion to operations.
///
/// Unlike in RFC 7386, a null also removes the maps above it that become empty, and an empty map creates nothing.
pub fn apply_merge(body: &mut Value, merge: &Map<String, Value>) {
    if let Some(body) = body.as_object_mut() {
        apply_merge_at(body, merge, &mut Vec::new());
    }
}

fn apply_merge_at<'a>(
    body: &mut Map<String, Value>,
    merge: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
) {
    for (key, value) in merge {
        path.push(key);
        match value {
            // Below a value that is not a map there is nothing to remove.
            Value::Null => fields::remove(body, path).unwrap_or_default(),
            Value::Object(below) => apply_merge_at(body, below, path),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                fields::put(body, path, value.clone());
            }
        }
        path.pop();
    }
}

/// Returns the RFC 6902 operations that turn one body into the other.
pub fn operations(before: &Value, after: &Value) -> Vec<PatchOperation> {
    json_patch::diff(before, after).0
}

/// Splits operations into those for the object and those for its status, for resources whose status is a subresource.
pub fn split_status(operations: Vec<PatchOperation>) -> (Vec<PatchOperation>, Vec<PatchOperation>) {
    operations.into_iter().partition(|it| {
        let path = it.path().as_str();
        path != "/status" && !path.starts_with("/status/")
    })
}

/// Returns the values that were sent but are missing from the response: most often the schema of the resource does not have these fields.
pub fn inconsistencies(merge: &Map<String, Value>, response: &Value) -> Diff {
    let mut left = diff::scoped(&Value::Object(merge.clone()), response, DiffScope::Left);
    left.retain(|it| {
        let is_dropped = DROPPED_WHEN_EMPTY.iter().any(|path| it.field == path);
        !is_dropped || !leaves_nothing(&it.old) || values::truthy(&it.new)
    });
    left
}

/// Returns whether a server that accepts this value stores nothing: the last annotation may be deleted, too.
fn leaves_nothing(sent: &Value) -> bool {
    sent.as_object().map_or_else(|| !values::truthy(sent), |sent| sent.values().all(Value::is_null))
}

#[cfg(test)]
mod tests;
