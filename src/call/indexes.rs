//! In-memory indexes: index handlers fill them, and every handler reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::{Map, Value};
use tokio::{sync::Mutex, task};

use crate::logic::{
    background::indexing::{
        Contribution, IndexItem, IndexKey, IndexPosition, IndexTable, IndexValues, Owner,
    },
    generation::Version,
    handlers::reconcile::INDEX,
};
use crate::sorted::CollectSorted as _;

/// Number of values of one object from which on they are changed on another thread: each takes about a microsecond.
const MANY: usize = 500;

/// The indexes of one operator, by id. All scripts share them, regardless of their language. Clones share the same indexes.
#[derive(Clone, Debug, Default)]
pub struct Indexes(Arc<BTreeMap<Arc<str>, Index>>);

/// One index. Every read returns its present content. Clones share it.
#[derive(Clone, Debug)]
pub struct Index {
    id: Arc<str>,
    table: Arc<RwLock<IndexTable>>,
    /// Changes take place one after the other, so that no task waits for the table while another thread changes many values.
    turn: Arc<Mutex<()>>,
    /// Approximate bytes of all values together; see [`Index::bytes`].
    bytes: Arc<AtomicUsize>,
    /// The first generation whose handlers filled the index in its present way.
    since: Version,
}

impl Indexes {
    /// Creates empty indexes with these ids.
    pub fn new(ids: impl IntoIterator<Item = Arc<str>>) -> Self {
        let index = |id: Arc<str>| (Arc::clone(&id), Index::new(id, Version::default()));
        Indexes(Arc::new(ids.into_iter().map(index).collect_map()))
    }

    /// Returns the indexes of the next generation, which has these ids. Indexes that stay keep their content; the content of those
    /// in `refilled` is outdated from now on.
    #[must_use]
    pub fn next(
        &self,
        ids: BTreeSet<Arc<str>>,
        refilled: &BTreeSet<Arc<str>>,
        version: Version,
    ) -> Self {
        if refilled.is_empty() && self.0.keys().eq(&ids) {
            return self.clone();
        }
        let index = |id: Arc<str>| {
            let Some(known) = self.get(&id) else {
                return (Arc::clone(&id), Index::new(id, version));
            };
            if !refilled.contains(&id) {
                return (id, known.clone());
            }
            known.write().retire();
            (id, Index { since: version, ..known.clone() })
        };
        Indexes(Arc::new(ids.into_iter().map(index).collect_map()))
    }

    /// Returns whether both are the same indexes, filled by the same handlers.
    pub fn are(&self, other: &Indexes) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the ids of the indexes that must be filled again, compared with these earlier ones.
    pub fn unfilled_since(&self, earlier: &Indexes) -> BTreeSet<Arc<str>> {
        let is_known =
            |it: &&Index| earlier.get(&it.id).is_some_and(|known| known.since == it.since);
        self.all().filter(|it| !is_known(it)).map(|it| Arc::clone(&it.id)).collect_set()
    }

    /// Removes all outdated values, because no handler will replace them. Other tasks run meanwhile.
    pub async fn sweep(&self) {
        for index in self.all() {
            let _turn = index.turn.lock().await;
            while index.change(IndexTable::sweep) {
                task::yield_now().await;
            }
        }
    }

    /// Returns the index with this id.
    pub fn get(&self, id: &str) -> Option<&Index> {
        self.0.get(id)
    }

    /// Returns all indexes, by id.
    pub fn all(&self) -> impl Iterator<Item = &Index> {
        self.0.values()
    }

    /// Removes all values of an object.
    pub async fn remove(&self, owner: &Owner) {
        for index in self.all() {
            index.apply(owner, Contribution::Remove).await;
        }
    }
}

impl Index {
    fn new(id: Arc<str>, since: Version) -> Self {
        let (table, turn, bytes) = (Arc::default(), Arc::default(), Arc::default());
        Index { id, table, turn, bytes, since }
    }

    /// Returns the id, which is also the name of the kwarg.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns whether both are the same index.
    pub fn is(&self, other: &Index) -> bool {
        Arc::ptr_eq(&self.table, &other.table)
    }

    /// Changes the values of an object.
    pub async fn apply(&self, owner: &Owner, contribution: Contribution) {
        let changed = (owner.clone(), contribution);
        self.apply_with(changed, |index, (owner, contribution)| {
            index.change(|it| it.apply(&owner, contribution));
        })
        .await;
    }

    /// Changes the values of an object, and returns the keys whose values have changed, in order.
    pub async fn apply_and_compare(
        &self,
        owner: &Owner,
        contribution: Contribution,
    ) -> BTreeSet<IndexKey> {
        let changed = (owner.clone(), contribution);
        let compared = self.apply_with(changed, |index, (owner, contribution)| {
            index.change(|table| {
                let before = table.contributed(&owner);
                table.apply(&owner, contribution);
                let now = table.contributed(&owner);
                if before == now {
                    return BTreeSet::new();
                }
                before.into_iter().chain(now).map(|(key, _)| key).collect_set()
            })
        });
        compared.await
    }

    /// Makes a change of the values of an object; of many values on another thread, so that other tasks run meanwhile.
    async fn apply_with<T: Default + Send + 'static>(
        &self,
        changed: (Owner, Contribution),
        change: impl FnOnce(&Index, (Owner, Contribution)) -> T + Send + 'static,
    ) -> T {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (owner, contribution) = &changed;
        let added = match contribution {
            Contribution::Keep | Contribution::Remove => 0,
            Contribution::Replace(entries) => entries.len(),
        };
        if added.max(self.read().count_of(owner)) < MANY {
            return change(self, changed);
        }
        let index = self.clone();
        // It has no result only after a panic, which was reported. The turn ends with the change, even if no task waits for it any more.
        let changed = task::spawn_blocking(move || (change(&index, changed), turn).0);
        changed.await.unwrap_or_default()
    }

    /// As [`IndexTable::reserve`].
    pub fn reserve(&self, owner: Owner, bytes: usize) {
        self.change(|it| it.reserve(owner, bytes));
    }

    /// Returns the counter of the approximate bytes of all values, with those that are reserved; it follows every change.
    pub fn bytes(&self) -> &Arc<AtomicUsize> {
        &self.bytes
    }

    fn change<T>(&self, change: impl FnOnce(&mut IndexTable) -> T) -> T {
        let mut table = self.write();
        let changed = change(&mut table);
        self.bytes.store(table.bytes(), Ordering::Relaxed);
        changed
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Returns whether the index has no values.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Returns whether there is a value under a key.
    pub fn contains(&self, key: &IndexKey) -> bool {
        self.read().contains(key)
    }

    /// Returns the present values under a key, or `None`; never an empty list.
    pub fn get(&self, key: &IndexKey) -> Option<IndexValues> {
        self.read().get(key)
    }

    /// Returns the values that an object has contributed, with their keys.
    pub fn contributed(&self, owner: &Owner) -> Vec<(IndexKey, IndexItem)> {
        self.read().contributed(owner)
    }

    /// Returns whether the operator uses it for itself, so that scripts do not see it.
    pub fn is_hidden(&self) -> bool {
        self.id.starts_with(INDEX)
    }

    /// Returns the present values under all keys.
    pub fn values(&self) -> IndexValues {
        self.read().values()
    }

    /// Returns the keys in order of insertion. Locks the index only for single steps: keys that are removed meanwhile are skipped,
    /// and keys that are added come at the end.
    pub fn keys(&self) -> IndexKeys {
        IndexKeys { index: self.clone(), place: None }
    }

    /// Returns a copy of the whole index as JSON, with the keys as strings.
    pub fn to_json(&self) -> Value {
        let item = |key: IndexKey| {
            let values = self.get(&key)?;
            let values =
                values.iter().filter_map(IndexItem::value).map(|it| Value::clone(it)).collect();
            Some((key.to_name(), Value::Array(values)))
        };
        Value::Object(self.keys().filter_map(item).collect::<Map<_, _>>())
    }

    fn read(&self) -> RwLockReadGuard<'_, IndexTable> {
        self.table.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, IndexTable> {
        self.table.write()
    }
}

/// An iterator over the keys of an index.
#[derive(Debug)]
pub struct IndexKeys {
    index: Index,
    place: Option<IndexPosition>,
}

impl Iterator for IndexKeys {
    type Item = IndexKey;

    fn next(&mut self) -> Option<IndexKey> {
        let table = self.index.read();
        let (place, key) = table.after(self.place)?;
        self.place = Some(place);
        Some(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, pin::pin, sync::atomic::Ordering};

    use futures::{FutureExt as _, poll};
    use serde_json::json;

    use super::{Contribution, IndexKey, MANY, Owner, Version};
    use crate::call::Indexes;
    use crate::logic::object::Header;

    #[tokio::test]
    async fn bytes_are_counted_per_object_and_removed_with_the_values() {
        let ids = || BTreeSet::from(["idx".into()]);
        let indexes = Indexes::new(ids());
        let bytes = |it: &Indexes| it.get("idx").unwrap().bytes().load(Ordering::Relaxed);
        let owner = |uid: &str| Owner::of(&Header { uid: Some(uid.into()), ..Header::default() });
        let put = |it: &Indexes, uid: &str, length: usize| {
            let entry = (IndexKey::text("key"), json!("x".repeat(length)).into());
            let change = Contribution::Replace(vec![entry]);
            let (index, owner) = (it.get("idx").unwrap().clone(), owner(uid));
            async move { index.apply(&owner, change).await }
        };
        put(&indexes, "a", 10_000).await;
        put(&indexes, "b", 10_000).await;
        assert!((20_000..21_000).contains(&bytes(&indexes)));
        put(&indexes, "a", 1_000).await;
        indexes.get("idx").unwrap().apply(&owner("b"), Contribution::Keep).await;
        assert!((11_000..12_000).contains(&bytes(&indexes)));
        indexes.remove(&owner("b")).await;
        assert!((1_000..2_000).contains(&bytes(&indexes)));
        put(&indexes, "b", 10_000).await;
        // The function has changed: values that it does not put again are removed.
        let next = indexes.next(ids(), &ids(), Version::FIRST);
        put(&next, "a", 1_000).await;
        assert!((11_000..12_000).contains(&bytes(&next)));
        next.sweep().await;
        assert!((1_000..2_000).contains(&bytes(&next)));
        indexes.remove(&owner("a")).await;
        assert_eq!(bytes(&next), 0);
        next.get("idx").unwrap().reserve(owner("a"), 5_000);
        next.get("idx").unwrap().reserve(owner("a"), 3_000);
        assert_eq!(bytes(&next), 3_000, "what a function has returned last");
        next.get("idx").unwrap().apply(&owner("a"), Contribution::Keep).await;
        assert_eq!(bytes(&next), 0, "it is in the index, or was dropped");
    }

    #[tokio::test]
    async fn an_iteration_skips_removed_keys_and_includes_added_ones() {
        let indexes = Indexes::new(["idx".into()]);
        let index = indexes.get("idx").unwrap();
        let owner = |uid: &str| Owner::of(&Header { uid: Some(uid.into()), ..Header::default() });
        let put = |key: &str| {
            let entry = (IndexKey::text(key), json!(1).into());
            let owner = owner(key);
            async move { index.apply(&owner, Contribution::Replace(vec![entry])).await }
        };
        for key in ["a", "b", "c"] {
            put(key).await;
        }
        let mut keys = index.keys();
        assert_eq!(keys.next(), Some(IndexKey::text("a")));
        indexes.remove(&owner("a")).await;
        indexes.remove(&owner("b")).await;
        put("d").await;
        assert_eq!(keys.collect::<Vec<_>>(), [IndexKey::text("c"), IndexKey::text("d")]);
    }

    #[tokio::test]
    async fn other_tasks_run_while_many_values_of_an_object_change() {
        let indexes = Indexes::new(["idx".into()]);
        let index = indexes.get("idx").unwrap();
        let owner = |uid: &str| Owner::of(&Header { uid: Some(uid.into()), ..Header::default() });
        let (a, b) = (owner("a"), owner("b"));
        let many = |value: i64| {
            let entry = |place: usize| (IndexKey::text(&place.to_string()), json!(value).into());
            Contribution::Replace((0..MANY).map(entry).collect())
        };
        let mut first = pin!(index.apply(&a, many(1)));
        assert!(poll!(first.as_mut()).is_pending(), "another thread changes it");
        let mut second = pin!(index.apply(&b, many(2)));
        assert!(poll!(second.as_mut()).is_pending(), "it waits for its turn");
        tokio::join!(first, second);
        assert_eq!((index.len(), index.values().len()), (MANY, 2 * MANY));
        let mut removal = pin!(indexes.remove(&a));
        assert!(poll!(removal.as_mut()).is_pending(), "another thread changes it");
        removal.await;
        assert_eq!((index.len(), index.values().len()), (MANY, MANY));
        let keys = index.apply_and_compare(&b, many(2)).await;
        assert!(keys.is_empty(), "nothing has changed");
        assert_eq!(index.apply_and_compare(&b, Contribution::Remove).await.len(), MANY);
        assert!(index.is_empty() && index.bytes().load(Ordering::Relaxed) == 0);
    }

    #[tokio::test]
    async fn a_change_that_no_task_waits_for_any_more_keeps_its_turn() {
        let indexes = Indexes::new(["idx".into()]);
        let index = indexes.get("idx").unwrap();
        let owner = |uid: &str| Owner::of(&Header { uid: Some(uid.into()), ..Header::default() });
        let put = |count: usize, value: i64| {
            let entry = |place: usize| (IndexKey::text(&place.to_string()), json!(value).into());
            Contribution::Replace((0..count).map(entry).collect())
        };
        {
            let _reading = index.read();
            let owner = owner("a");
            let dropped = Box::pin(index.apply(&owner, put(MANY, 1)));
            assert_eq!(dropped.now_or_never(), None, "another thread waits for the reader");
            assert!(index.turn.try_lock().is_err());
        }
        index.apply(&owner("b"), put(1, 2)).await;
        assert_eq!(index.values().len(), MANY + 1, "both were made, one after the other");
    }

    #[tokio::test]
    async fn other_tasks_run_while_the_outdated_values_of_many_objects_are_removed() {
        let ids = || BTreeSet::from(["idx".into()]);
        let indexes = Indexes::new(ids());
        for uid in 0..1500 {
            let owner = Owner::of(&Header { uid: Some(uid.to_string()), ..Header::default() });
            let entry = (IndexKey::text("key"), json!(uid).into());
            indexes.get("idx").unwrap().apply(&owner, Contribution::Replace(vec![entry])).await;
        }
        let next = indexes.next(ids(), &ids(), Version::FIRST);
        let mut sweep = pin!(next.sweep());
        assert!(poll!(sweep.as_mut()).is_pending());
        assert_eq!(next.get("idx").unwrap().values().len(), 500);
        sweep.await;
        assert!(next.get("idx").unwrap().is_empty());
    }
}
