//! The storage of the server: objects, their versions, their history. It makes no decisions: callers check whether a write is allowed.

pub(crate) mod history;
pub(crate) mod identities;
pub(crate) mod stored;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use self::{
    history::{ChangeKind, History, ObjectChange},
    identities::Identities,
    stored::Stored,
};
use crate::{
    object,
    resource::{self, kind::Kind},
};

/// Returns the time for timestamps: RFC 3339, in seconds.
pub(crate) type Clock = Arc<dyn Fn() -> String + Send + Sync>;

/// The namespace and the name of an object: its key among those of its resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The key of an object among all objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreKey {
    /// The qualified name: `plural.group`.
    pub(crate) resource: String,
    pub(crate) place: ObjectName,
}

impl StoreKey {
    pub(crate) fn new(resource: &str, namespace: &str, name: &str) -> Self {
        let place = ObjectName { namespace: namespace.into(), name: name.into() };
        Self { resource: resource.into(), place }
    }
}

/// The objects of a resource, by namespace and name.
pub(crate) type ObjectsByName = BTreeMap<ObjectName, Arc<Stored>>;

/// One resource, with its objects and its history.
pub(crate) struct ResourceTable {
    pub(crate) kind: Arc<Kind>,
    pub(crate) objects: ObjectsByName,
    pub(crate) history: History,
}

/// Limit of removed resources whose last changes are kept. Watchers read them at once, so a few are enough.
const REMOVED_MAX: usize = 8;

/// All objects and resources of the server.
pub(crate) struct Store {
    /// The resources, by `plural.group`.
    pub(crate) tables: BTreeMap<String, ResourceTable>,
    /// Histories of resources that are no longer served, the latest first: their watchers still receive the last deletions.
    removed: VecDeque<(String, History)>,
    /// The version of the latest change of any object.
    pub(crate) revision: u64,
    /// Versions older than this one are compacted: reads and watches cannot start there.
    pub(crate) compacted: u64,
    /// The delay with which watchers see changes.
    pub(crate) latency: Duration,
    pub(crate) identities: Identities,
    clock: Clock,
}

impl Store {
    pub(crate) fn new(kinds: Vec<Kind>, seed: Option<u64>, clock: Clock) -> Self {
        let mut store = Self {
            tables: BTreeMap::new(),
            removed: VecDeque::new(),
            revision: 0,
            compacted: 0,
            latency: Duration::ZERO,
            identities: Identities::new(seed),
            clock,
        };
        for kind in kinds {
            store.define(kind);
        }
        store
    }

    /// Returns the time for timestamps, RFC 3339.
    pub(crate) fn now(&self) -> String {
        (self.clock)()
    }

    /// Returns the last changes of a resource that is no longer served.
    pub(crate) fn removed(&self, resource: &str) -> Option<&History> {
        self.removed.iter().find(|(it, _)| it == resource).map(|(_, history)| history)
    }

    pub(crate) fn get(&self, key: &StoreKey) -> Option<Arc<Stored>> {
        self.tables.get(&key.resource)?.objects.get(&key.place).cloned()
    }

    /// Creates or replaces an object. Returns it with its new version.
    pub(crate) fn put(&mut self, key: &StoreKey, object: Value) -> Arc<Stored> {
        let present = self.get(key).is_some();
        self.commit(key, if present { ChangeKind::Modified } else { ChangeKind::Added }, object)
    }

    /// Removes an object at once, even if it has finalizers. Returns its last state.
    pub(crate) fn remove(&mut self, key: &StoreKey) -> Option<Arc<Stored>> {
        let last = self.get(key)?.own_tree();
        if key.resource == resource::CRDS {
            // The CRD is named after its resource, whose objects are deleted with it.
            self.empty(&key.place.name);
        }
        Some(self.commit(key, ChangeKind::Deleted, last))
    }

    fn empty(&mut self, resource: &str) {
        let places = self.tables.get(resource).map(|it| it.objects.keys().cloned().collect());
        let places: Vec<ObjectName> = places.unwrap_or_default();
        for place in places {
            self.remove(&StoreKey { resource: resource.into(), place });
        }
    }

    /// Starts to serve a resource, or replaces its definition.
    pub(crate) fn define(&mut self, mut kind: Kind) {
        let resource = kind.def.qualified();
        if let Some(table) = self.tables.get_mut(&resource) {
            if !table.objects.is_empty() {
                kind.read_as_stored_by(&table.kind);
            }
            table.kind = Arc::new(kind);
        } else {
            let kind = Arc::new(kind);
            // A watch cannot start before the resource existed.
            let history = History::since(self.revision);
            let table = ResourceTable { objects: BTreeMap::new(), history, kind };
            self.removed.retain(|(it, _)| *it != resource);
            self.tables.insert(resource, table);
        }
    }

    /// Assigns the next version and records the change. No other function makes versions.
    fn commit(&mut self, key: &StoreKey, kind: ChangeKind, mut object: Value) -> Arc<Stored> {
        self.revision += 1;
        object::set_version(&mut object, self.revision);
        let stored = Arc::new(Stored::of(&object));
        let due = Instant::now() + self.latency;
        if let Some(table) = self.tables.get_mut(&key.resource) {
            let before = match kind {
                ChangeKind::Added | ChangeKind::Modified => {
                    table.objects.insert(key.place.clone(), Arc::clone(&stored))
                }
                ChangeKind::Deleted => table.objects.remove(&key.place),
            };
            let object = Arc::clone(&stored);
            table.history.push(ObjectChange { revision: self.revision, due, kind, object, before });
        }
        if key.resource == resource::CRDS {
            self.redefine(kind, &object);
        }
        stored
    }

    /// Applies a change of a CRD to the served resources.
    fn redefine(&mut self, change: ChangeKind, definition: &Value) {
        let Some(kind) = Kind::from_crd(definition) else { return };
        match change {
            ChangeKind::Added | ChangeKind::Modified => self.define(kind),
            // Watches of the resource find it missing, and end.
            ChangeKind::Deleted => {
                let resource = kind.def.qualified();
                if let Some(table) = self.tables.remove(&resource) {
                    self.removed.truncate(REMOVED_MAX - 1);
                    self.removed.push_front((resource, table.history));
                }
            }
        }
    }
}

impl ResourceTable {
    /// Returns the objects as they were at a revision; `None` if the history does not reach back to it.
    pub(crate) fn at(&self, revision: u64) -> Option<ObjectsByName> {
        if revision < self.history.forgotten() {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self.history.after(revision).rev() {
            let head = &change.object.head;
            let place =
                ObjectName { namespace: head.namespace.to_string(), name: head.name.to_string() };
            match &change.before {
                Some(before) => objects.insert(place, Arc::clone(before)),
                None => objects.remove(&place),
            };
        }
        Some(objects)
    }
}
