//! The memory of the server: objects, their versions, their history. It decides nothing: what may be written is settled before.

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
    history::{Change, ChangeKind, History},
    identities::Identities,
    stored::Stored,
};
use crate::{
    object,
    resource::{self, kind::Kind},
};

/// Gives the time for stamps, in RFC 3339 to the second.
pub(crate) type Clock = Arc<dyn Fn() -> String + Send + Sync>;

/// Where an object is among those of its resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// `plural.group`
    pub(crate) resource: String,
    pub(crate) place: Place,
}

impl Key {
    pub(crate) fn new(resource: &str, namespace: &str, name: &str) -> Self {
        let place = Place { namespace: namespace.into(), name: name.into() };
        Self { resource: resource.into(), place }
    }
}

/// The objects of a resource, by namespace and name.
pub(crate) type Objects = BTreeMap<Place, Arc<Stored>>;

/// One resource with its objects.
pub(crate) struct Table {
    pub(crate) kind: Arc<Kind>,
    pub(crate) objects: Objects,
    pub(crate) history: History,
}

/// So many removed resources keep their last changes: watchers read them at once.
const REMOVED_MAX: usize = 8;

/// Everything the server knows.
pub(crate) struct Store {
    /// By `plural.group`.
    pub(crate) tables: BTreeMap<String, Table>,
    /// What happened to the objects of resources that are not served any more, the latest first: who watched them is told
    /// the end.
    removed: VecDeque<(String, History)>,
    /// The version of the latest change of any object.
    pub(crate) revision: u64,
    /// Older versions are compacted: they cannot be asked for.
    pub(crate) compacted: u64,
    /// How late watchers see changes.
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

    /// The time for stamps.
    pub(crate) fn now(&self) -> String {
        (self.clock)()
    }

    /// The last changes of a resource that is not served any more.
    pub(crate) fn removed(&self, resource: &str) -> Option<&History> {
        self.removed.iter().find(|(it, _)| it == resource).map(|(_, history)| history)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.tables.get(&key.resource)?.objects.get(&key.place).cloned()
    }

    /// Adds an object, or puts it in the place of the present one. Gives it with its version.
    pub(crate) fn put(&mut self, key: &Key, object: Value) -> Arc<Stored> {
        let present = self.get(key).is_some();
        self.commit(key, if present { ChangeKind::Modified } else { ChangeKind::Added }, object)
    }

    /// Removes an object at once, whoever holds it. Gives its last state.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Stored>> {
        let last = self.get(key)?.own_tree();
        if key.resource == resource::CRDS {
            // Named after what it defines, whose objects do not outlive it.
            self.empty(&key.place.name);
        }
        Some(self.commit(key, ChangeKind::Deleted, last))
    }

    fn empty(&mut self, resource: &str) {
        let places = self.tables.get(resource).map(|it| it.objects.keys().cloned().collect());
        let places: Vec<Place> = places.unwrap_or_default();
        for place in places {
            self.remove(&Key { resource: resource.into(), place });
        }
    }

    /// Starts to serve a resource, or serves it differently from now on.
    pub(crate) fn define(&mut self, mut kind: Kind) {
        let resource = kind.def.qualified();
        if let Some(table) = self.tables.get_mut(&resource) {
            if !table.objects.is_empty() {
                kind.read_as_stored_by(&table.kind);
            }
            table.kind = Arc::new(kind);
        } else {
            let kind = Arc::new(kind);
            // Nobody watches from before there was anything to watch.
            let history = History::since(self.revision);
            let table = Table { objects: BTreeMap::new(), history, kind };
            self.removed.retain(|(it, _)| *it != resource);
            self.tables.insert(resource, table);
        }
    }

    /// The one place where versions are made.
    fn commit(&mut self, key: &Key, kind: ChangeKind, mut object: Value) -> Arc<Stored> {
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
            table.history.push(Change { revision: self.revision, due, kind, object, before });
        }
        if key.resource == resource::CRDS {
            self.redefine(kind, &object);
        }
        stored
    }

    /// A definition has changed.
    fn redefine(&mut self, change: ChangeKind, definition: &Value) {
        let Some(kind) = Kind::from_crd(definition) else { return };
        match change {
            ChangeKind::Added | ChangeKind::Modified => self.define(kind),
            // Watchers of the resource find it missing, and end.
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

impl Table {
    /// The objects as they were at a version that the history reaches back to.
    pub(crate) fn at(&self, revision: u64) -> Option<Objects> {
        if revision < self.history.forgotten() {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self.history.after(revision).rev() {
            let head = &change.object.head;
            let place =
                Place { namespace: head.namespace.to_string(), name: head.name.to_string() };
            match &change.before {
                Some(before) => objects.insert(place, Arc::clone(before)),
                None => objects.remove(&place),
            };
        }
        Some(objects)
    }
}
