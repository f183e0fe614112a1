//! The progress of all handlers of one cause: what is to be called, what is to be stored, whether all is done.
//!
//! The contract is the `state/…` and `deliver/…` rows of `tests/vectors/progress-records.json`.
//!
//! One cycle of a cause goes through a state in this order: [`State::load`] → [`State::begin`] → if anything is
//! [`State::superseded`]: [`State::repurpose`], and if something still is: [`State::purge`] → call those who are
//! [`State::awakened`] → [`State::apply`] their outcomes → [`State::store`] → if [`State::done`]: [`State::purge`],
//! otherwise sleep for the least of [`State::delays`]. Sub-handlers go the same way without superseding and purging; those
//! that one attempt of their parent runs at different times are joined by [`State::absorb`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    corrupt::CorruptState,
    json,
    outcome::Outcome,
    progress::{self, Record},
    reason::Reason,
};
use crate::settings::ProgressStorage;

/// The records of one cause, in the order of the handlers.
#[derive(Clone, Debug, Default)]
pub struct State {
    purpose: Option<Reason>,
    entries: IndexMap<Arc<str>, Entry>,
}

/// One record and what is known about it besides.
#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    /// What is stored on the object, without nulls; `None` if nothing is.
    stored: Option<Value>,
    /// The handler is selected for the cause: the cause waits for it.
    active: bool,
    /// The last attempt of this cycle wanted to fail for good.
    is_permanent: bool,
}

/// How many handlers are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Finished well.
    pub succeeded: usize,
    /// Finished with errors.
    pub failed: usize,
    /// Not finished.
    pub left: usize,
}

/// A result that cannot be merged into what the patch has already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "deliver the result of handler '{id}': the patch has something else than a map at `{place}`"
)]
pub struct Undeliverable {
    /// The handler.
    pub id: String,
    /// The field of the patch.
    pub place: String,
}

impl State {
    /// Reads the stored records of all handlers of the resource, whether or not they match the present cause.
    ///
    /// Records of other ids are not ours: they are never touched.
    pub fn load<'a>(
        storage: &ProgressStorage,
        body: &Value,
        owned: impl IntoIterator<Item = &'a Arc<str>>,
        now: Timestamp,
    ) -> Result<Self, CorruptState> {
        let mut entries = IndexMap::new();
        for id in owned {
            if let Some(stored) = progress::fetch(storage, body, id)? {
                let record = Record::parse(id, &stored, now)?;
                let stored = Some(without_nulls(stored));
                entries.insert(
                    Arc::clone(id),
                    Entry { record, stored, active: false, is_permanent: false },
                );
            }
        }
        Ok(State { purpose: None, entries })
    }

    /// Names the cause and makes the selected handlers its own: their records become active, missing ones are made.
    pub fn begin<'a>(
        &mut self,
        reason: Reason,
        selected: impl IntoIterator<Item = &'a Arc<str>>,
        now: Timestamp,
    ) {
        self.purpose = Some(reason);
        for id in selected {
            let fresh = || Entry {
                record: Record::new(now, Some(reason.as_str())),
                stored: None,
                active: false,
                is_permanent: false,
            };
            self.entries.entry(Arc::clone(id)).or_insert_with(fresh).active = true;
        }
    }

    /// Takes in the records of further handlers. Those that are here already are newer, and stay.
    pub fn absorb(&mut self, further: State) {
        for (id, entry) in further.entries {
            self.entries.entry(id).or_insert(entry);
        }
    }

    /// Takes in further records; they replace those that are here already.
    pub fn replace(&mut self, newer: &State) {
        for (id, entry) in &newer.entries {
            self.entries.insert(Arc::clone(id), entry.clone());
        }
    }

    /// Removes a handler that is not declared any more.
    pub fn remove(&mut self, id: &str) {
        self.entries.shift_remove(id);
    }

    /// Replaces the record of a handler. A handler that is not part of the state is ignored.
    pub fn set(&mut self, id: &str, record: Record) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.record = record;
            entry.is_permanent = false;
        }
    }

    /// Cuts the messages of all records to so many bytes; `0` leaves them out.
    pub fn shorten_messages(&mut self, bytes: usize) {
        for entry in self.entries.values_mut() {
            entry.record.shorten_message(bytes);
        }
    }

    /// The ids of all records.
    pub fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.keys()
    }

    /// The handlers that are stored for other causes, by the purpose. Empty if no cause is superseded.
    pub fn superseded(&self) -> BTreeMap<String, Counts> {
        let mut foreign = BTreeMap::<String, Counts>::new();
        for record in self.records().filter(|it| !self.is_ours(it)) {
            if let Some(purpose) = &record.purpose {
                foreign.entry(purpose.clone()).or_default().add(record);
            }
        }
        foreign
    }

    /// Lets the selected handlers go on for the present cause, with their retries and delays.
    ///
    /// If some are [`State::superseded`] even then, they are of handlers that are not selected any more: purge.
    pub fn repurpose(&mut self) {
        let purpose = self.purpose.map(|it| it.as_str().to_owned());
        for entry in self.entries.values_mut().filter(|it| it.active) {
            entry.record.purpose.clone_from(&purpose);
        }
    }

    /// Whether the handler is to be called now. False for handlers that are not part of the state.
    pub fn awakened(&self, id: &str, now: Timestamp) -> bool {
        self.entries.get(id).is_some_and(|it| it.active && it.record.awakened(now))
    }

    /// The record of a handler.
    pub fn record(&self, id: &str) -> Option<&Record> {
        self.entries.get(id).map(|it| &it.record)
    }

    /// Notes how an attempt ended: see [`Record::transition`]. A handler that is not part of the state is ignored.
    pub fn apply(&mut self, id: &str, outcome: &Outcome, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.record = entry.record.transition(outcome, now);
            entry.is_permanent = outcome.is_permanent();
        }
    }

    /// Returns whether the last attempt of this cycle wanted to fail for good.
    pub fn is_permanent(&self, id: &str) -> bool {
        self.entries.get(id).is_some_and(|it| it.is_permanent)
    }

    /// Adds to the patch all records that are not on the object as they are.
    ///
    /// Also rewrites the records of unselected handlers that are stored in another form, as timestamps may be.
    pub fn store(&self, storage: &ProgressStorage, body: &Value, patch: &mut Map<String, Value>) {
        for (id, entry) in &self.entries {
            let stored = entry.stored.as_ref();
            if !stored.is_some_and(|it| json::equal(it, &entry.record.to_json(false))) {
                progress::store(storage, body, id, &entry.record, patch);
            }
        }
    }

    /// Removes the records of these handlers, of all in the state, and of all their sub-handlers.
    pub fn purge<'a>(
        &self,
        storage: &ProgressStorage,
        body: &Value,
        patch: &mut Map<String, Value>,
        owned: impl IntoIterator<Item = &'a Arc<str>>,
    ) {
        let subrefs = self.records().flat_map(|it| &it.subrefs).map(String::as_str);
        let known = self.entries.keys().map(AsRef::as_ref).chain(subrefs);
        let mut ids: BTreeSet<&str> = known.collect();
        for id in owned {
            ids.insert(id);
        }
        for id in ids {
            progress::purge(storage, body, id, patch);
        }
    }

    /// Whether no handler of the cause is to be called any more.
    pub fn done(&self) -> bool {
        self.active().all(Record::finished)
    }

    /// The handlers of the present cause, and those of no known cause.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for record in self.records().filter(|it| self.is_ours(it)) {
            counts.add(record);
        }
        counts
    }

    /// For each handler that is not finished, how long until it is to be called.
    pub fn delays(&self, now: Timestamp) -> Vec<Duration> {
        self.active().filter(|it| !it.finished()).map(|it| it.delay(now)).collect()
    }

    /// How long until a handler of the cause is to be called; `None` if it is finished, or not of the cause.
    pub fn delay(&self, id: &str, now: Timestamp) -> Option<Duration> {
        let entry = self.entries.get(id).filter(|it| it.active && !it.record.finished())?;
        Some(entry.record.delay(now))
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.entries.values().map(|it| &it.record)
    }

    fn active(&self) -> impl Iterator<Item = &Record> {
        self.entries.values().filter(|it| it.active).map(|it| &it.record)
    }

    fn is_ours(&self, record: &Record) -> bool {
        match (&record.purpose, self.purpose) {
            (Some(purpose), Some(ours)) => purpose == ours.as_str(),
            (None, _) | (_, None) => true,
        }
    }
}

impl Counts {
    fn add(&mut self, record: &Record) {
        self.succeeded += usize::from(record.success);
        self.failed += usize::from(record.failure);
        self.left += usize::from(!record.finished());
    }
}

/// Adds the result of a handler to the status in a patch. Maps are merged, one level deep; a null is no result.
pub fn deliver(
    patch: &mut Map<String, Value>,
    id: &str,
    result: &Value,
) -> Result<(), Undeliverable> {
    let undeliverable = |place: String| Undeliverable { id: id.to_owned(), place };
    if result.is_null() {
        return Ok(());
    }
    let status = patch.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let status = status.as_object_mut().ok_or_else(|| undeliverable("status".into()))?;
    match result {
        Value::Object(entries) => {
            let target = status.entry(id).or_insert_with(|| Value::Object(Map::new()));
            let target =
                target.as_object_mut().ok_or_else(|| undeliverable(format!("status.{id}")))?;
            target.extend(entries.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            status.insert(id.to_owned(), result.clone());
        }
    }
    Ok(())
}

fn without_nulls(mut stored: Value) -> Value {
    if let Value::Object(fields) = &mut stored {
        fields.retain(|_, value| !value.is_null());
    }
    stored
}

#[cfg(test)]
mod tests;
