//! The state that the operator has stored on an object, read by another client.

use std::collections::BTreeSet;

use serde_json::Value;

use super::history::{OF_CREATION, OF_UPDATE};

const PREFIX: &str = "kopf.zalando.org/";
const HANDLED: &str = "last-handled-configuration";
const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// The stored state of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub(super) uid: String,
    /// `spec.x` of the last handled essence.
    pub(super) handled: Option<u64>,
    /// The handlers that are recorded as finished for the current cause.
    pub(super) finished: BTreeSet<String>,
    /// The records of handlers, and what else is stored under the prefix: names and values.
    pub(super) records: Vec<(String, String)>,
    /// Whether it has the finalizer.
    pub(super) is_held: bool,
    /// Whether its status has a result of another object.
    pub(super) is_foreign: bool,
    /// Whether it is being deleted.
    pub(super) is_deleting: bool,
    /// The number of causes that were fully handled.
    pub(super) causes: u64,
}

impl Stored {
    /// Reads an object.
    pub(super) fn read(object: &Value) -> Self {
        let meta = &object["metadata"];
        let annotations = meta["annotations"].as_object();
        let own = annotations.into_iter().flatten();
        let own = own.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str()?)));
        let records = own.filter(|(key, _)| *key != HANDLED);
        let records: Vec<(String, String)> =
            records.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let is_finished = |text: &str| {
            let record: Value = serde_json::from_str(text).unwrap_or_default();
            record["success"] == true || record["failure"] == true
        };
        let finished = records.iter().filter(|(_, text)| is_finished(text));
        let handled = annotations.and_then(|it| it.get(&format!("{PREFIX}{HANDLED}"))?.as_str());
        let handled = handled.map(|it| serde_json::from_str::<Value>(it).unwrap_or_default());
        let uid = meta["uid"].as_str().unwrap_or_default();
        let mut results = object["status"].as_object().into_iter().flatten();
        Stored {
            is_foreign: results.any(|(_, it)| it.get("uid").is_some_and(|it| it != uid)),
            uid: uid.to_owned(),
            handled: handled.map(|it| it["spec"]["x"].as_u64().unwrap_or_default()),
            finished: finished.map(|(key, _)| key.clone()).collect(),
            records,
            is_held: meta["finalizers"]
                .as_array()
                .is_some_and(|it| it.iter().any(|it| it == FINALIZER)),
            is_deleting: meta.get("deletionTimestamp").is_some(),
            causes: 0,
        }
    }

    pub(super) fn has_record(&self, id: &str) -> bool {
        self.records.iter().any(|(key, _)| key == id)
    }

    /// Keeps what was stored before for the same cause.
    pub(super) fn keep(&mut self, before: &Stored) {
        self.finished.extend(before.finished.iter().cloned());
    }

    /// Returns whether a handler is recorded as finished, for a cause that has brought the object to this `spec.x`.
    pub(super) fn is_recorded(&self, id: &str, x: u64) -> bool {
        let is_handled = |it| OF_CREATION.contains(&id) || (OF_UPDATE.contains(&id) && it >= x);
        self.handled.is_some_and(is_handled) || self.finished.contains(id)
    }
}
