//! One index: values by key, each provided by one object.
//!
//! The cost of an event depends on the number of keys of its object, not on the size of the index. Values are shared, never copied.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, OnceLock},
};

use super::{Contribution, IndexItem, IndexKey, Owner};
use crate::sorted::CollectSorted as _;

/// The values under one key, in the order in which their objects were indexed.
pub type IndexValues = Arc<[IndexItem]>;

/// Number of outdated values after which [`IndexTable::sweep`] stops: it takes up to a microsecond for each.
const SWEPT_AT_ONCE: usize = 1000;

/// A position in the order of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexPosition(u64);

/// One index.
#[derive(Debug, Default)]
pub struct IndexTable {
    stores: BTreeMap<IndexKey, KeyValues>,
    /// The keys in the order of their insertion.
    order: BTreeMap<IndexPosition, IndexKey>,
    /// What each object has contributed.
    owners: BTreeMap<Owner, Contributed>,
    /// The same for objects whose values come from handlers that have changed since.
    retired: BTreeMap<Owner, Contributed>,
    last: IndexPosition,
    /// Approximate bytes of all values, and of those that functions have returned and that are not applied yet.
    bytes: usize,
    /// Approximate bytes of what functions have returned, by object, until it is applied.
    reserved: BTreeMap<Owner, usize>,
    /// [`IndexTable::values`], cached until something changes.
    all: OnceLock<IndexValues>,
}

/// What one object has contributed.
#[derive(Debug, Default)]
struct Contributed {
    /// The keys and the positions of the values, sorted by key.
    places: Box<[(IndexKey, IndexPosition)]>,
    /// Approximate bytes of the values.
    bytes: usize,
}

/// The values under one key.
#[derive(Debug)]
struct KeyValues {
    place: IndexPosition,
    content: KeyContent,
    /// The content as a list, cached until it changes. Only for more than one value: a list of one is cheap.
    listed: OnceLock<IndexValues>,
}

/// Most keys have one value, and there may be very many keys.
#[derive(Debug)]
enum KeyContent {
    One(IndexPosition, IndexItem),
    Many(BTreeMap<IndexPosition, IndexItem>),
}

impl IndexTable {
    /// Applies the effect of a call of an index handler to the values of its object.
    pub fn apply(&mut self, owner: &Owner, contribution: Contribution) {
        let reserved = self.reserved.remove(owner).unwrap_or_default();
        self.bytes = self.bytes.saturating_sub(reserved);
        let retired = self.retired.remove(owner);
        let is_outdated = retired.is_some();
        self.owners.extend(retired.map(|it| (owner.clone(), it)));
        match contribution {
            // A new handler does not keep the values of its predecessor.
            Contribution::Keep if is_outdated => self.replace(owner, BTreeMap::new()),
            Contribution::Keep => {}
            Contribution::Remove => self.replace(owner, BTreeMap::new()),
            Contribution::Replace(entries) => {
                self.replace(owner, entries.into_iter().collect_map());
            }
        }
    }

    /// Counts what a function has returned for an object, in approximate bytes, until a contribution of the object is applied.
    pub fn reserve(&mut self, owner: Owner, bytes: usize) {
        let former = self.reserved.insert(owner, bytes).unwrap_or_default();
        self.bytes = self.bytes.saturating_sub(former).saturating_add(bytes);
    }

    /// Marks all values as outdated. They stay readable: those of an object until it is indexed again, all others until
    /// [`IndexTable::sweep`].
    pub fn retire(&mut self) {
        self.retired.append(&mut self.owners);
    }

    /// Removes outdated values, of one object after the other, until many are removed. Returns whether there are more.
    pub fn sweep(&mut self) -> bool {
        let mut removed = 0;
        while removed < SWEPT_AT_ONCE {
            let Some((owner, contributed)) = self.retired.pop_first() else { return false };
            removed += contributed.places.len();
            self.owners.insert(owner.clone(), contributed);
            self.replace(&owner, BTreeMap::new());
        }
        true
    }

    /// Returns the approximate bytes of memory of all values, with those that are reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.stores.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Returns whether there is a value under a key.
    pub fn contains(&self, key: &IndexKey) -> bool {
        self.stores.contains_key(key)
    }

    /// Returns the values under a key; never empty.
    pub fn get(&self, key: &IndexKey) -> Option<IndexValues> {
        self.stores.get(key).map(KeyValues::values)
    }

    /// Returns the number of values that an object has contributed.
    pub fn count_of(&self, owner: &Owner) -> usize {
        self.contributed_by(owner).map_or(0, |it| it.places.len())
    }

    fn contributed_by(&self, owner: &Owner) -> Option<&Contributed> {
        self.owners.get(owner).or_else(|| self.retired.get(owner))
    }

    /// Returns the values that an object has contributed, with their keys.
    pub fn contributed(&self, owner: &Owner) -> Vec<(IndexKey, IndexItem)> {
        let value = |(key, place): &(IndexKey, IndexPosition)| {
            let value = match &self.stores.get(key)?.content {
                KeyContent::One(_, value) => value,
                KeyContent::Many(values) => values.get(place)?,
            };
            Some((key.clone(), value.clone()))
        };
        self.contributed_by(owner).iter().flat_map(|it| &it.places).filter_map(value).collect()
    }

    /// Returns the values under all keys, in the order of the keys.
    pub fn values(&self) -> IndexValues {
        let all = || {
            let stores = self.order.values().filter_map(|key| self.stores.get(key));
            stores.flat_map(|it| it.values().to_vec()).collect()
        };
        Arc::clone(self.all.get_or_init(all))
    }

    /// Returns the first key after a position, and its own position: for iterations that tolerate changes in between.
    pub fn after(&self, place: Option<IndexPosition>) -> Option<(IndexPosition, &IndexKey)> {
        let from = place.map_or(IndexPosition::default(), IndexPosition::next);
        self.order.range(from..).next().map(|(place, key)| (*place, key))
    }

    /// Replaces the values of an object. A value under the same key keeps its position.
    fn replace(&mut self, owner: &Owner, entries: BTreeMap<IndexKey, IndexItem>) {
        let before = self.owners.remove(owner).unwrap_or_default();
        if before.places.is_empty() && entries.is_empty() {
            return;
        }
        self.all.take();
        let bytes: usize = entries.iter().map(|(key, it)| it.bytes(key.bytes())).sum();
        self.bytes = self.bytes.saturating_sub(before.bytes).saturating_add(bytes);
        let mut known = BTreeMap::new();
        for (key, place) in before.places {
            if entries.contains_key(&key) {
                known.insert(key, place);
            } else {
                self.remove(&key, place);
            }
        }
        let mut now = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let place = known.get(&key).copied().unwrap_or_else(|| self.new_place());
            now.push((self.put(key, place, value), place));
        }
        if !now.is_empty() {
            self.owners.insert(owner.clone(), Contributed { places: now.into(), bytes });
        }
    }

    fn new_place(&mut self) -> IndexPosition {
        self.last = self.last.next();
        self.last
    }

    /// Stores a value. Returns the key, whose text all values share.
    fn put(&mut self, key: IndexKey, place: IndexPosition, value: IndexItem) -> IndexKey {
        match self.stores.entry(key) {
            Entry::Occupied(mut present) => {
                present.get_mut().put(place, value);
                present.key().clone()
            }
            Entry::Vacant(free) => {
                let key = free.key().clone();
                // A key is ordered by its first value: positions are never reused.
                self.order.insert(place, key.clone());
                let content = KeyContent::One(place, value);
                free.insert(KeyValues { place, content, listed: OnceLock::new() });
                key
            }
        }
    }

    fn remove(&mut self, key: &IndexKey, place: IndexPosition) {
        let Some(store) = self.stores.get_mut(key) else { return };
        if store.remove(place) {
            self.order.remove(&store.place);
            self.stores.remove(key);
        }
    }
}

impl IndexPosition {
    fn next(self) -> Self {
        IndexPosition(self.0 + 1)
    }
}

impl KeyValues {
    fn values(&self) -> IndexValues {
        match &self.content {
            KeyContent::One(_, value) => [value.clone()].into(),
            KeyContent::Many(values) => {
                let list = || values.values().cloned().collect();
                Arc::clone(self.listed.get_or_init(list))
            }
        }
    }

    fn put(&mut self, place: IndexPosition, value: IndexItem) {
        self.listed.take();
        match &mut self.content {
            KeyContent::One(present, old) if *present == place => *old = value,
            KeyContent::One(present, old) => {
                let both = [(*present, old.clone()), (place, value)];
                self.content = KeyContent::Many(both.into_iter().collect_map());
            }
            KeyContent::Many(values) => drop(values.insert(place, value)),
        }
    }

    /// Removes a value. Returns whether none is left.
    fn remove(&mut self, place: IndexPosition) -> bool {
        self.listed.take();
        match &mut self.content {
            KeyContent::One(present, _) => *present == place,
            KeyContent::Many(values) => {
                values.remove(&place);
                values.is_empty()
            }
        }
    }
}
