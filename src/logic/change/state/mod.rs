//! The progress of all handlers of one cause: what to call, what to store, and whether the cause is finished.
//!
//! The contract is the `state/…` and `deliver/…` rows of `tests/vectors/progress-records.json`.
//!
//! A cycle of a cause uses a state in this order: [`State::load`] → [`State::begin`] → if anything is [`State::superseded`]:
//! [`State::repurpose`], and if anything still is: [`progress::purge`] of all [`State::known`] → call the handlers that are
//! [`State::awakened`] → [`State::apply`] their outcomes → [`StateEntry::store`] of all [`State::entries`] → if [`State::done`]:
//! [`progress::purge`] of all [`State::known`], otherwise sleep for the shortest of [`State::delays`]. Sub-handlers use the same order
//! without superseding and purging; those that one attempt of their parent runs at different times are combined by
//! [`State::absorb`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use indexmap::IndexMap;
use jiff::Timestamp;
use kopf_json::values;
use serde_json::{Map, Value};

use crate::logic::{
    handlers::{
        outcome::Outcome,
        progress::{self, ProgressRecord},
    },
    object::{corrupt::CorruptState, measure, reason::Reason},
};
use crate::settings::ProgressStorage;

/// The records of one cause, in the order of the handlers.
#[derive(Clone, Debug, Default)]
pub struct State {
    purpose: Option<Reason>,
    entries: IndexMap<Arc<str>, StateEntry>,
}

/// A record with its stored form and its part in the cycle.
#[derive(Clone, Debug)]
pub struct StateEntry {
    record: ProgressRecord,
    /// The form stored on the object, without nulls; `None` if nothing is stored.
    stored: Option<Value>,
    /// The handler is selected for the cause: the cause waits for it.
    active: bool,
    /// The last attempt of this cycle requested a permanent failure.
    is_permanent: bool,
    /// The stored times are ahead of the clock, which was set back: the record has earlier ones.
    is_moved: bool,
}

/// The number of handlers by progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressCounts {
    /// Handlers that have finished successfully.
    pub succeeded: usize,
    /// Handlers that have finished with an error.
    pub failed: usize,
    /// Handlers that are not finished.
    pub left: usize,
}

/// A result that cannot be merged into the content of the patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deliver the result of handler '{id}': {problem}")]
pub struct Undeliverable {
    /// The id of the handler.
    pub id: String,
    /// What prevents it.
    pub problem: DeliveryProblem,
}

/// Why a result cannot be merged into the content of the patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryProblem {
    /// The value of this field of the patch is not a map.
    #[error("`{0}` in the patch is not a map")]
    NotAMap(String),
    /// The patch would be too large.
    #[error("{0}")]
    TooLarge(String),
}

impl State {
    /// Reads the stored records of all handlers of the resource, including those of other causes.
    ///
    /// Records of other ids belong to other operators and are never changed.
    pub fn load<'a>(
        storage: &ProgressStorage,
        body: &Value,
        owned: impl IntoIterator<Item = &'a Arc<str>>,
        now: Timestamp,
    ) -> Result<Self, CorruptState> {
        let mut entries = IndexMap::new();
        for id in owned {
            if let Some(stored) = progress::fetch(storage, body, id)? {
                let record = ProgressRecord::parse(id, &stored, now)?;
                let is_moved = record.is_moved(&stored);
                let stored = Some(without_nulls(stored));
                let (active, is_permanent) = (false, false);
                let entry = StateEntry { record, stored, active, is_permanent, is_moved };
                entries.insert(Arc::clone(id), entry);
            }
        }
        Ok(State { purpose: None, entries })
    }

    /// Sets the cause and assigns the selected handlers to it: their records become active, missing ones are created.
    pub fn begin<'a>(
        &mut self,
        reason: Reason,
        selected: impl IntoIterator<Item = &'a Arc<str>>,
        now: Timestamp,
    ) {
        self.purpose = Some(reason);
        for id in selected {
            let fresh = || StateEntry {
                record: ProgressRecord::new(now, Some(reason.as_str())),
                stored: None,
                active: false,
                is_permanent: false,
                is_moved: false,
            };
            self.entries.entry(Arc::clone(id)).or_insert_with(fresh).active = true;
        }
    }

    /// Adds further records. Existing records are newer, and are kept.
    pub fn absorb(&mut self, further: State) {
        for (id, entry) in further.entries {
            self.entries.entry(id).or_insert(entry);
        }
    }

    /// Adds newer records; they replace existing ones.
    pub fn replace(&mut self, newer: &State) {
        for (id, entry) in &newer.entries {
            self.entries.insert(Arc::clone(id), entry.clone());
        }
    }

    /// Keeps only the records of handlers that have finished.
    pub fn retain_finished(&mut self) {
        self.entries.retain(|_, entry| entry.record.finished());
    }

    /// Returns the ids of all sub-handlers of these handlers.
    pub fn subrefs(&self) -> Vec<Arc<str>> {
        self.records().flat_map(|it| &it.subrefs).map(|it| it.as_str().into()).collect()
    }

    /// Removes a handler that is no longer declared.
    pub fn remove(&mut self, id: &str) {
        self.entries.shift_remove(id);
    }

    /// Replaces the record of a handler. A handler that is not part of the state is ignored.
    pub fn set(&mut self, id: &str, record: ProgressRecord) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.record = record;
            entry.is_permanent = false;
        }
    }

    /// Truncates the messages of all records to this number of bytes; `0` removes them.
    pub fn shorten_messages(&mut self, bytes: usize) {
        for entry in self.entries.values_mut() {
            entry.record.shorten_message(bytes);
        }
    }

    /// Returns the ids of all records.
    pub fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.keys()
    }

    /// Returns the number of handlers stored for other causes, by purpose. Empty if no cause is superseded.
    pub fn superseded(&self) -> BTreeMap<String, ProgressCounts> {
        let mut foreign = BTreeMap::<String, ProgressCounts>::new();
        for record in self.records().filter(|it| !self.is_ours(it)) {
            if let Some(purpose) = &record.purpose {
                foreign.entry(purpose.clone()).or_default().add(record);
            }
        }
        foreign
    }

    /// Assigns the selected handlers to the current cause, with their retries and delays.
    ///
    /// If some are still [`State::superseded`], they belong to handlers that are no longer selected: purge.
    pub fn repurpose(&mut self) {
        let purpose = self.purpose.map(|it| it.as_str().to_owned());
        for entry in self.entries.values_mut().filter(|it| it.active) {
            entry.record.purpose.clone_from(&purpose);
        }
    }

    /// Returns whether the handler is to be called now. False for handlers that are not part of the state.
    pub fn awakened(&self, id: &str, now: Timestamp) -> bool {
        self.entries.get(id).is_some_and(|it| it.active && it.record.awakened(now))
    }

    /// Returns the record of a handler.
    pub fn record(&self, id: &str) -> Option<&ProgressRecord> {
        self.entries.get(id).map(|it| &it.record)
    }

    /// Records how an attempt ended: see [`ProgressRecord::transition`]. A handler that is not part of the state is ignored.
    pub fn apply(&mut self, id: &str, outcome: &Outcome, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.record = entry.record.transition(outcome, now);
            entry.is_permanent = outcome.is_permanent();
        }
    }

    /// Returns whether the last attempt of this cycle requested a permanent failure.
    pub fn is_permanent(&self, id: &str) -> bool {
        self.entries.get(id).is_some_and(|it| it.is_permanent)
    }

    /// Returns all handlers with their records.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &StateEntry)> {
        self.entries.iter().map(|(id, entry)| (&**id, entry))
    }

    /// Does the same as [`State::known`], but without the handlers that are selected for the cause and their sub-handlers.
    pub fn others<'a>(
        &'a self,
        owned: impl IntoIterator<Item = &'a Arc<str>>,
    ) -> BTreeSet<&'a str> {
        let mut others = self.known(owned);
        for (id, entry) in self.entries().filter(|(_, it)| it.active) {
            let subrefs = entry.record.subrefs.iter().map(String::as_str);
            subrefs.chain([id]).for_each(|it| {
                others.remove(it);
            });
        }
        others
    }

    /// Returns the ids of these handlers, of all handlers in the state, and of all their sub-handlers.
    pub fn known<'a>(&'a self, owned: impl IntoIterator<Item = &'a Arc<str>>) -> BTreeSet<&'a str> {
        let subrefs = self.records().flat_map(|it| &it.subrefs).map(String::as_str);
        let known = self.entries.keys().chain(owned).map(AsRef::as_ref);
        known.chain(subrefs).collect()
    }

    /// Returns whether no handler of the cause is to be called any more.
    pub fn done(&self) -> bool {
        self.active().all(ProgressRecord::finished)
    }

    /// Returns the counts for the current cause, including handlers without a known cause.
    pub fn counts(&self) -> ProgressCounts {
        let mut counts = ProgressCounts::default();
        for record in self.records().filter(|it| self.is_ours(it)) {
            counts.add(record);
        }
        counts
    }

    /// Returns the time until each unfinished handler is to be called.
    pub fn delays(&self, now: Timestamp) -> Vec<Duration> {
        self.active().filter(|it| !it.finished()).map(|it| it.delay(now)).collect()
    }

    /// Returns the time until a handler of the cause is to be called; `None` if it is finished, or not part of the cause.
    pub fn delay(&self, id: &str, now: Timestamp) -> Option<Duration> {
        let entry = self.entries.get(id).filter(|it| it.active && !it.record.finished())?;
        Some(entry.record.delay(now))
    }

    fn records(&self) -> impl Iterator<Item = &ProgressRecord> {
        self.entries.values().map(|it| &it.record)
    }

    fn active(&self) -> impl Iterator<Item = &ProgressRecord> {
        self.entries.values().filter(|it| it.active).map(|it| &it.record)
    }

    fn is_ours(&self, record: &ProgressRecord) -> bool {
        match (&record.purpose, self.purpose) {
            (Some(purpose), Some(ours)) => purpose == ours.as_str(),
            (None, _) | (_, None) => true,
        }
    }
}

impl StateEntry {
    /// Adds the record to a patch if it differs from the stored one. If it is about to be purged, only the marker of the operator is
    /// added.
    ///
    /// Also rewrites the record of an unselected handler that is stored in another form, for example of timestamps. Not one whose
    /// times were only moved: it may be about to be removed.
    pub fn store(
        &self,
        id: &str,
        (storage, body): (&ProgressStorage, &Value),
        purged: &BTreeSet<&str>,
        patch: &mut Map<String, Value>,
    ) {
        let is_same = |it: &Value| values::equal(it, &self.record.to_json(false));
        if (!self.active && self.is_moved) || self.stored.as_ref().is_some_and(is_same) {
            return;
        }
        if purged.contains(id) {
            progress::purge(storage, body, id, patch);
            progress::mark(storage, body, patch);
        } else {
            progress::store(storage, body, id, &self.record, patch);
        }
    }
}

impl ProgressCounts {
    fn add(&mut self, record: &ProgressRecord) {
        self.succeeded += usize::from(record.success);
        self.failed += usize::from(record.failure);
        self.left += usize::from(!record.finished());
    }
}

/// Adds the result of a handler to the status in a patch. Maps are merged one level deep; a null is not a result.
///
/// # Errors
/// If the place is taken by a value that is not a map, or if the patch would be too large as a whole.
pub fn deliver(
    patch: &mut Map<String, Value>,
    id: &str,
    result: Value,
) -> Result<(), Undeliverable> {
    let undeliverable = |problem| Undeliverable { id: id.to_owned(), problem };
    if result.is_null() {
        return Ok(());
    }
    let (items, bytes) = growth(patch, id, &result);
    let admitted = measure::admit(patch, items, bytes);
    admitted.map_err(|it| undeliverable(DeliveryProblem::TooLarge(it)))?;
    merge(patch, id, result).map_err(undeliverable)
}

/// Returns the items and bytes that a result adds to a patch, less those of what it replaces.
fn growth(patch: &Map<String, Value>, id: &str, result: &Value) -> (usize, usize) {
    let status = patch.get("status");
    let present = status.and_then(|it| it.get(id));
    let new = [("status", status), (id, present)].into_iter().filter(|(_, it)| it.is_none());
    let new: Vec<_> = new.map(|(key, _)| measure::field(key)).collect();
    let replaced: Vec<_> = match (present, result) {
        (Some(Value::Object(present)), Value::Object(entries)) => {
            entries.keys().filter_map(|it| present.get(it)).collect()
        }
        (present, _) => present.into_iter().collect(),
    };
    let without = |all: usize, of: fn(&Value) -> usize| {
        all.saturating_sub(replaced.iter().copied().map(of).sum())
    };
    let items = without(measure::items(result), measure::items) + new.len();
    let bytes = without(measure::bytes(result), measure::bytes) + new.iter().sum::<usize>();
    (items, bytes)
}

fn merge(patch: &mut Map<String, Value>, id: &str, result: Value) -> Result<(), DeliveryProblem> {
    let not_a_map = |place: &str| DeliveryProblem::NotAMap(place.to_owned());
    let status = patch.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let status = status.as_object_mut().ok_or_else(|| not_a_map("status"))?;
    let Value::Object(entries) = result else {
        status.insert(id.to_owned(), result);
        return Ok(());
    };
    let target = status.entry(id).or_insert_with(|| Value::Object(Map::new()));
    let target = target.as_object_mut().ok_or_else(|| not_a_map(&format!("status.{id}")))?;
    target.extend(entries);
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
