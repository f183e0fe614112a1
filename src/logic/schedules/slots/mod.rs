//! The Lease in which an operator stores the last slot of each schedule.
//!
//! It is written with a resourceVersion before each run: of several replicas, only one can write it, and only that one runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[cfg(test)]
mod tests;

/// The annotation of the Lease with all slots, as JSON.
pub const ANNOTATION: &str = "kopf.dev/schedules";

/// Maximum number of schedules in the Lease. Beyond it, the oldest ones are dropped that the writer does not have.
const KEPT_MAX: usize = 200;

/// The last slot of one schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleSlot {
    /// The time that it was planned for.
    pub slot: Timestamp,
    /// When its run started.
    pub started: Timestamp,
    /// When its run ended; `None` while it runs, or if its process has died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The process that runs it.
    pub by: String,
    /// The schedule at that time, such as `0 3 * * * (UTC)`.
    pub schedule: String,
}

/// The last slots, by schedule.
pub type ScheduleSlots = BTreeMap<String, ScheduleSlot>;

/// The address of the Lease, and its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRef {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of this process.
    pub identity: String,
}

impl LeaseRef {
    /// Returns the place in this namespace, next to the Lease of the leader election with this name.
    pub fn new(namespace: &str, election: &str, identity: &str) -> Self {
        LeaseRef {
            namespace: namespace.to_owned(),
            name: format!("{election}-schedules"),
            identity: identity.to_owned(),
        }
    }

    /// Returns the Lease with these slots: to create if `lease` is `None`, to replace it otherwise.
    pub fn lease(&self, lease: Option<&Value>, slots: &ScheduleSlots, now: Timestamp) -> Value {
        let mut lease = lease.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.name, "namespace": self.namespace },
            })
        });
        let text = serde_json::to_string(slots).unwrap_or_default();
        if !lease.pointer("/metadata/annotations").is_some_and(Value::is_object)
            && let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("annotations".into(), json!({}));
        }
        if let Some(annotations) =
            lease.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        {
            annotations.insert(ANNOTATION.into(), text.into());
        }
        if let Some(fields) = lease.as_object_mut() {
            let stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
            let spec = json!({ "holderIdentity": self.identity, "renewTime": stamp });
            fields.insert("spec".into(), spec);
        }
        lease
    }
}

/// Reads the slots of a Lease.
///
/// # Errors
/// Fails if the annotation is unreadable: without it, slots would run again.
pub fn read(lease: Option<&Value>) -> Result<ScheduleSlots, String> {
    let annotations = lease.and_then(|it| it.pointer("/metadata/annotations"));
    let Some(text) = annotations.and_then(|it| it.get(ANNOTATION)) else {
        return Ok(ScheduleSlots::new());
    };
    let text = text.as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|error| {
        format!("its annotation {ANNOTATION} is unreadable ({error}); remove the annotation to start over")
    })
}

/// Stores a slot, and drops the oldest slots of unknown schedules if there are too many.
pub fn store(slots: &mut ScheduleSlots, key: &str, slot: ScheduleSlot, known: &BTreeSet<String>) {
    slots.insert(key.to_owned(), slot);
    while slots.len() > KEPT_MAX {
        let unknown = slots.iter().filter(|(it, _)| *it != key && !known.contains(*it));
        let Some((oldest, _)) = unknown.min_by_key(|(_, it)| it.started) else { return };
        let oldest = oldest.clone();
        slots.remove(&oldest);
    }
}
