//! The cache of controllers: a copy of the store with indexes by uid, owner and namespace.
//!
//! For most objects, it contains only the owners and finalizers. It keeps complete bodies for the resources that controllers read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use crate::sorted::CollectSorted as _;
use crate::{object, resource::ResourceDef};

/// The key of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    /// The qualified name: `plural.group`.
    pub(crate) resource: String,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectKey {
    pub(crate) fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.resource, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource, self.name),
        }
    }
}

/// One entry of `ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// It is the controller reference: this owner manages the object.
    pub(crate) controller: bool,
    /// A foreground deletion of the owner waits for the object.
    pub(crate) blocks: bool,
}

/// The cached state of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedObject {
    pub(crate) uid: String,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleting: bool,
    /// `None` if no controller reads objects of this resource.
    pub(crate) body: Option<Arc<Value>>,
}

impl CachedObject {
    fn of(body: &Arc<Value>, whole: bool) -> Self {
        Self {
            uid: object::meta(body, "uid").into(),
            owners: owners(body),
            finalizers: object::finalizers(body),
            deleting: object::deleting(body),
            body: whole.then(|| Arc::clone(body)),
        }
    }

    /// Returns the controller reference.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.owners.iter().find(|it| it.controller)
    }

    pub(crate) fn held_by(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|it| it == finalizer)
    }
}

fn owners(body: &Value) -> Vec<OwnerReference> {
    let references = body.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let read = |it: &Value| {
        let text = |field: &str| it.get(field).and_then(Value::as_str).unwrap_or_default().into();
        let flag = |field: &str| it.get(field).and_then(Value::as_bool).unwrap_or(false);
        OwnerReference {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller"),
            blocks: flag("blockOwnerDeletion"),
        }
    };
    references.into_iter().flatten().map(read).collect()
}

/// A change of one object, with its previous state.
pub(crate) struct Update<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) old: Option<&'a CachedObject>,
    pub(crate) new: Option<&'a CachedObject>,
}

impl Update<'_> {
    /// Returns old and new owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &OwnerReference> {
        let sides = self.old.into_iter().chain(self.new);
        sides.flat_map(|it| it.owners.iter())
    }

    /// Returns the last known state.
    pub(crate) fn latest(&self) -> Option<&CachedObject> {
        self.new.or(self.old)
    }
}

/// The cache of all objects.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    defs: BTreeMap<String, ResourceDef>,
    /// Resources by group and kind.
    kinds: BTreeMap<(String, String), String>,
    /// The resources with complete bodies.
    whole: BTreeSet<&'static str>,
    objects: BTreeMap<ObjectKey, CachedObject>,
    uids: BTreeMap<String, ObjectKey>,
    /// Objects by the uid of an owner.
    dependents: BTreeMap<String, BTreeSet<ObjectKey>>,
    namespaces: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects with complete bodies and without a controller reference.
    loose: BTreeSet<ObjectKey>,
}

impl Cache {
    pub(crate) fn new(whole: BTreeSet<&'static str>) -> Self {
        Self { whole, ..Self::default() }
    }

    /// Replaces the served resources. Removes objects of resources that are no longer served, and returns their keys.
    pub(crate) fn define(&mut self, defs: Vec<ResourceDef>) -> Vec<ObjectKey> {
        self.kinds = defs
            .iter()
            .map(|it| ((it.group.clone(), it.kind.clone()), it.qualified()))
            .collect_map();
        self.defs = defs.into_iter().map(|it| (it.qualified(), it)).collect_map();
        let gone = self.objects.keys().filter(|it| !self.defs.contains_key(&it.resource));
        gone.cloned().collect()
    }

    /// Applies one change. Returns the previous state of the object.
    pub(crate) fn apply(
        &mut self,
        key: &ObjectKey,
        body: Option<&Arc<Value>>,
    ) -> Option<CachedObject> {
        let old = self.objects.remove(key);
        if let Some(old) = &old {
            self.forget(key, old);
        }
        if let Some(body) = body {
            let entry = CachedObject::of(body, self.whole.contains(key.resource.as_str()));
            self.remember(key, &entry);
            self.objects.insert(key.clone(), entry);
        }
        old
    }

    fn remember(&mut self, key: &ObjectKey, entry: &CachedObject) {
        self.uids.insert(entry.uid.clone(), key.clone());
        for owner in &entry.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if entry.body.is_some() && entry.controller().is_none() {
            self.loose.insert(key.clone());
        }
        if !key.namespace.is_empty() {
            self.namespaces.entry(key.namespace.clone()).or_default().insert(key.clone());
        }
    }

    fn forget(&mut self, key: &ObjectKey, entry: &CachedObject) {
        if self.uids.get(&entry.uid) == Some(key) {
            self.uids.remove(&entry.uid);
        }
        for owner in &entry.owners {
            drop_from(&mut self.dependents, &owner.uid, key);
        }
        drop_from(&mut self.namespaces, &key.namespace, key);
        self.loose.remove(key);
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&CachedObject> {
        self.objects.get(key)
    }

    /// Returns the body of an object, if its resource is kept complete.
    pub(crate) fn body(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(key)?.body.as_ref()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<(&ObjectKey, &CachedObject)> {
        self.objects.get_key_value(self.uids.get(uid)?)
    }

    /// Returns all objects that refer to this owner.
    pub(crate) fn dependents(
        &self,
        uid: &str,
    ) -> impl Iterator<Item = (&ObjectKey, &CachedObject)> {
        let keys = self.dependents.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.objects.get_key_value(key))
    }

    /// Returns the objects of one resource that an owner controls.
    pub(crate) fn managed<'a>(
        &'a self,
        uid: &'a str,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        let all = self.dependents(uid).filter(move |(key, entry)| {
            key.resource == resource && entry.controller().is_some_and(|it| it.uid == uid)
        });
        all.filter_map(|(key, entry)| Some((key, entry.body.as_ref()?)))
    }

    /// Returns all objects in a namespace, by resource and name.
    pub(crate) fn inside(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&ObjectKey, &CachedObject)> {
        let keys = self.namespaces.get(namespace).into_iter().flatten();
        keys.filter_map(|key| self.objects.get_key_value(key))
    }

    /// Returns the objects of a resource in one namespace, by name.
    pub(crate) fn within<'a>(
        &'a self,
        resource: &'a str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a CachedObject)> {
        let start = ObjectKey::new(resource, namespace, "");
        let here = move |key: &ObjectKey| key.resource == resource && key.namespace == namespace;
        self.objects.range(start..).take_while(move |(key, _)| here(key))
    }

    /// Returns the objects of a resource in one namespace that have no controller reference.
    pub(crate) fn loose<'a>(
        &'a self,
        resource: &'a str,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        let start = ObjectKey::new(resource, namespace, "");
        let here = move |key: &&ObjectKey| key.resource == resource && key.namespace == namespace;
        let keys = self.loose.range(start..).take_while(here);
        keys.filter_map(|key| Some((key, self.body(key)?)))
    }

    /// Returns all objects of a resource, by namespace and name.
    pub(crate) fn all<'a>(
        &'a self,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a CachedObject)> {
        let start = ObjectKey::new(resource, "", "");
        self.objects.range(start..).take_while(move |(key, _)| key.resource == resource)
    }

    /// Returns the objects of all resources.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&ObjectKey, &CachedObject)> {
        self.objects.iter()
    }

    pub(crate) fn def(&self, resource: &str) -> Option<&ResourceDef> {
        self.defs.get(resource)
    }

    /// Returns the resource of a kind, as owner references name it.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&ResourceDef> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let def = self.defs.get(self.kinds.get(&(group.to_owned(), kind.to_owned()))?)?;
        def.versions.iter().any(|it| it == version).then_some(def)
    }
}

fn drop_from(index: &mut BTreeMap<String, BTreeSet<ObjectKey>>, entry: &str, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(entry) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(entry);
        }
    }
}
