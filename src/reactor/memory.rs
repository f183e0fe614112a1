//! What the process remembers about objects between their events.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::conclusion::Unsent;
use crate::logic::{object::Header, patch::Transformation, throttle::Throttle};
use crate::ports::Memo;

/// Finds an object in memory: its uid, or what else identifies it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Arc<str>);

/// One object's memory. An idle object costs this and its key, nothing else.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The first event was part of a listing: the object is older than this process.
    pub(super) noticed_by_listing: bool,
    /// A cause was handled to its end since this process runs.
    pub(super) handled_once: bool,
    /// The memo of its handlers; made on first use.
    pub(super) memo: Option<Memo>,
    /// Pauses after unexpected errors; absent while all is well.
    pub(super) throttle: Option<Box<Throttle>>,
    /// What the last cycle could not send; only for another try with the same event.
    pub(super) unsent: Option<Box<Unsent>>,
    /// Transformations that met a conflict and wait for the next cycle.
    pub(super) leftovers: Vec<Transformation>,
}

/// The memories of all objects. A worker takes one out while it works and puts it back.
#[derive(Debug, Default)]
pub(super) struct Memories(Mutex<BTreeMap<Key, Memory>>);

impl Key {
    /// The key of an object.
    pub(super) fn of(header: &Header) -> Self {
        if let Some(uid) = header.uid.as_deref().filter(|it| !it.is_empty()) {
            return Key(uid.into());
        }
        let part = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".into());
        let parts = [
            header.kind.clone(),
            header.api_version.clone(),
            part(&header.name),
            part(&header.namespace),
            part(&header.creation_timestamp),
        ];
        Key(parts.join("//").into())
    }
}

impl Memories {
    /// Takes the memory of an object out; a new object gets a fresh one.
    pub(super) fn recall(&self, key: &Key, listed: bool) -> Memory {
        let known = self.lock().remove(key);
        known.unwrap_or_else(|| Memory { noticed_by_listing: listed, ..Memory::default() })
    }

    /// Puts a memory back.
    ///
    /// A memo that nobody wrote into is dropped: an idle object should cost little.
    pub(super) fn keep(&self, key: Key, mut memory: Memory, of_operator: &Memo) {
        memory.memo = memory.memo.filter(|it| !(it.is_spare() && of_operator.lock().is_empty()));
        self.lock().insert(key, memory);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The object's memo: at first a copy of the operator's.
    pub(super) fn memo(&mut self, of_operator: &Memo) -> Memo {
        self.memo.get_or_insert_with(|| of_operator.detached()).clone()
    }

    /// Whether handlers for resuming are due.
    pub(super) fn is_initial(&self) -> bool {
        self.noticed_by_listing && !self.handled_once
    }
}
