//! The failures of index handlers for one object: kept in memory only, until they succeed or the object is deleted.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use crate::logic::handlers::{outcome::Outcome, progress::ProgressRecord};

/// The records of index handlers by id. Those that succeeded have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexFailures(BTreeMap<Arc<str>, ProgressRecord>);

impl IndexFailures {
    /// Returns whether a handler may be called now: it has not failed permanently and does not wait for a retry.
    pub fn is_due(&self, id: &str, now: Timestamp) -> bool {
        self.0.get(id).is_none_or(|it| it.awakened(now))
    }

    /// Returns the number of failed attempts of a handler, and when the first of them began.
    pub fn effort(&self, id: &str) -> Option<(u64, Timestamp)> {
        self.0.get(id).map(|it| (it.retries, it.started))
    }

    /// Records how an attempt ended that began at `started`. A success removes the record.
    pub fn note(&mut self, id: &Arc<str>, outcome: &Outcome, started: Timestamp, now: Timestamp) {
        let record = self.0.remove(id).unwrap_or_else(|| ProgressRecord::new(started, None));
        let record = record.transition(outcome, now);
        if !record.success {
            self.0.insert(Arc::clone(id), record);
        }
    }

    /// Removes the record of a handler that has changed.
    pub fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Returns whether there is no failure.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all records, by id.
    pub fn records(&self) -> impl Iterator<Item = (&Arc<str>, &ProgressRecord)> {
        self.0.iter()
    }
}
