//! The memory of the server: objects, their versions, their history.

pub(crate) mod history;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::apiserver::{
    object,
    refusal::Refusal,
    resource::{self, ResourceDef},
    store::history::{Change, ChangeKind, History},
    verbs::write::{self, Part},
};

/// Gives the time for stamps, in RFC 3339 to the second.
pub(crate) type Clock = Arc<dyn Fn() -> String + Send + Sync>;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// `plural.group`
    pub(crate) resource: String,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One resource with its objects.
pub(crate) struct Table {
    pub(crate) def: ResourceDef,
    /// By namespace and name.
    pub(crate) objects: BTreeMap<(String, String), Arc<Value>>,
    pub(crate) history: History,
}

/// Everything the server knows.
pub(crate) struct Store {
    pub(crate) tables: BTreeMap<String, Table>,
    /// The version of the latest change of any object.
    pub(crate) revision: u64,
    /// Older versions are compacted: they cannot be asked for.
    pub(crate) compacted: u64,
    /// How late watchers see changes.
    pub(crate) latency: Duration,
    /// Makes uids and generated names differ.
    serial: u64,
    /// Whether new objects get uids, times and generations.
    stamps: bool,
    clock: Clock,
}

impl Store {
    pub(crate) fn new(defs: Vec<ResourceDef>, stamps: bool, clock: Clock) -> Self {
        let mut store = Self {
            tables: BTreeMap::new(),
            revision: 0,
            compacted: 0,
            latency: Duration::ZERO,
            serial: 0,
            stamps,
            clock,
        };
        for def in defs {
            store.define(def);
        }
        store
    }

    /// The time for stamps.
    pub(crate) fn now(&self) -> String {
        (self.clock)()
    }

    pub(crate) fn table(&self, resource: &str) -> Result<&Table, Refusal> {
        self.tables.get(resource).ok_or_else(Refusal::unknown_resource)
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Arc<Value>, Refusal> {
        let table = self.table(&key.resource)?;
        let found = table.objects.get(&(key.namespace.clone(), key.name.clone()));
        found.cloned().ok_or_else(|| Refusal::not_found(&table.def, &key.name))
    }

    /// Adds an object that a client sends. With stamps, the server's own fields are not taken from clients.
    pub(crate) fn create_sent(
        &mut self,
        resource: &str,
        namespace: &str,
        body: Value,
    ) -> Result<Value, Refusal> {
        let mut body = write::created(&self.table(resource)?.def, namespace, body)?;
        if self.stamps
            && let Some(meta) = object::meta_mut(&mut body)
        {
            meta.retain(|field, _| {
                matches!(field.as_str(), "name" | "namespace")
                    || !write::OWN_FIELDS.contains(&field.as_str())
            });
        }
        self.create(resource, body)
    }

    /// Adds an object. Its place is in its metadata, its own fields stay as given.
    pub(crate) fn create(&mut self, resource: &str, mut body: Value) -> Result<Value, Refusal> {
        self.name(&mut body);
        let def = self.table(resource)?.def.clone();
        let key = Key {
            resource: resource.into(),
            namespace: object::meta(&body, "namespace").into(),
            name: object::meta(&body, "name").into(),
        };
        if self.get(&key).is_ok() {
            return Err(Refusal::already_exists(&def, &key.name));
        }
        let storage = def.versions.first().map(String::as_str).unwrap_or_default();
        object::put(&mut body, "apiVersion", Some(def.api_version(storage).into()));
        self.stamp(&def, &mut body);
        if resource == resource::CRDS && body.get("status").is_none() {
            let status = resource::established(&body);
            object::put(&mut body, "status", Some(status));
        }
        write::drop_empty(&mut body);
        Ok(self.commit(&key, ChangeKind::Added, body))
    }

    /// Changes an object. Without a difference there is no new version and no event.
    pub(crate) fn update(
        &mut self,
        key: &Key,
        part: Part,
        edit: impl FnOnce(&Value) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let old = self.get(key)?;
        let def = self.table(&key.resource)?.def.clone();
        let mut new = write::updated(&def, part, &old, edit(&old)?)?;
        if object::deleting(&old) && !object::held(&new) {
            // The last holder lets go. Its answer shows the version before the removal, as the real server does it.
            self.remove(key, &old);
            return Ok(new);
        }
        if new == *old {
            return Ok(new);
        }
        if write::is_new_generation(&def, &old, &new) {
            raise_generation(&mut new);
        }
        Ok(self.commit(key, ChangeKind::Modified, new))
    }

    /// Marks a held object for deletion and gives it; removes a free one, for which there is nothing to show.
    pub(crate) fn delete(&mut self, key: &Key) -> Result<Option<Value>, Refusal> {
        let old = self.get(key)?;
        if !object::held(&old) {
            self.remove(key, &old);
            return Ok(None);
        }
        let mut marked = (*old).clone();
        if object::deleting(&old) {
            return Ok(Some(marked));
        }
        object::set_meta(&mut marked, "deletionTimestamp", (self.clock)());
        if self.stamps {
            object::set_meta(&mut marked, "deletionGracePeriodSeconds", 0);
            raise_generation(&mut marked);
        }
        Ok(Some(self.commit(key, ChangeKind::Modified, marked)))
    }

    /// Starts to serve a resource, or serves it differently from now on.
    pub(crate) fn define(&mut self, def: ResourceDef) {
        let resource = def.qualified();
        if let Some(table) = self.tables.get_mut(&resource) {
            table.def = def;
        } else {
            let table = Table { objects: BTreeMap::new(), history: History::default(), def };
            self.tables.insert(resource, table);
        }
    }

    fn remove(&mut self, key: &Key, last: &Value) {
        self.commit(key, ChangeKind::Deleted, last.clone());
    }

    /// The one place where versions are made. Gives the object with its version.
    fn commit(&mut self, key: &Key, kind: ChangeKind, mut object: Value) -> Value {
        let definition = (key.resource == resource::CRDS).then(|| ResourceDef::from_crd(&object));
        let definition = definition.flatten();
        if let (ChangeKind::Deleted, Some(def)) = (kind, &definition) {
            // Watchers of the resource find it missing, and end.
            self.tables.remove(&def.qualified());
        }
        self.revision += 1;
        object::set_meta(&mut object, "resourceVersion", self.revision.to_string());
        let due = Instant::now() + self.latency;
        if let Some(table) = self.tables.get_mut(&key.resource) {
            let place = (key.namespace.clone(), key.name.clone());
            let stored = Arc::new(object.clone());
            let before = match kind {
                ChangeKind::Added | ChangeKind::Modified => {
                    table.objects.insert(place, Arc::clone(&stored))
                }
                ChangeKind::Deleted => table.objects.remove(&place),
            };
            let revision = self.revision;
            table.history.push(Change { revision, due, kind, object: stored, before });
        }
        if let (ChangeKind::Added | ChangeKind::Modified, Some(def)) = (kind, definition) {
            self.define(def);
        }
        object
    }

    /// Makes a name if one is asked for.
    fn name(&mut self, body: &mut Value) {
        let prefix = object::meta(body, "generateName");
        if !prefix.is_empty() && object::meta(body, "name").is_empty() {
            self.serial += 1;
            let name = format!("{prefix}{:05x}", self.serial);
            object::set_meta(body, "name", name);
        }
    }

    /// What the server adds to a new object.
    fn stamp(&mut self, def: &ResourceDef, body: &mut Value) {
        if !self.stamps {
            return;
        }
        if object::meta(body, "uid").is_empty() {
            self.serial += 1;
            object::set_meta(body, "uid", format!("00000000-0000-4000-8000-{:012x}", self.serial));
        }
        object::set_meta(body, "creationTimestamp", (self.clock)());
        if !def.native {
            object::set_meta(body, "generation", 1);
        }
    }
}

/// Only objects that count their generations have one.
fn raise_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_u64);
    if let Some(generation) = generation {
        object::set_meta(object, "generation", generation + 1);
    }
}

/// An object as seen through one of the versions of its resource.
pub(crate) fn seen(def: &ResourceDef, version: &str, object: &Value) -> Value {
    let mut seen = object.clone();
    object::put(&mut seen, "apiVersion", Some(json!(def.api_version(version))));
    seen
}
