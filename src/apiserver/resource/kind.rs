//! A served kind with its versions, schemas and rules.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::sorted::CollectSorted as _;
use crate::{
    native::{self, Conversion, Native},
    object,
    resource::{ResourceDef, definition},
    schema::{self, Rules, Schema},
    store::stored::Stored,
};

/// A resource, its versions, and its rules.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) def: ResourceDef,
    /// The rules of a kind that is compiled into Kubernetes; `None` for custom resources.
    pub(crate) native: Option<&'static Native>,
    /// By name; the same names as in `def.versions`.
    pub(crate) versions: BTreeMap<String, KindVersion>,
    /// The storage of custom objects.
    pub(crate) storage: Storage,
}

/// The storage of the objects of a CRD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// The storage version; empty for native kinds.
    pub(crate) version: String,
    /// The `clientConfig` of the conversion webhook; `None` if all versions have the same fields.
    pub(crate) webhook: Option<Arc<Value>>,
}

/// The properties of one version of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindVersion {
    /// `None` if everything is accepted.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The JSON schema as written in the CRD.
    pub(crate) raw_schema: Option<Arc<Value>>,
    /// The compiled validation; `None` if everything is accepted.
    pub(crate) rules: Option<Arc<Rules>>,
    /// The printer columns of the CRD.
    pub(crate) columns: Vec<Column>,
    pub(crate) scale: Option<Scale>,
    /// It has no status subresource, although other versions have one.
    pub(crate) without_status: bool,
    /// The schema of the storage version, if the versions have different ones.
    pub(crate) stored: Option<Arc<Schema>>,
    /// Field selectors in addition to the name and the namespace: `spec.size`.
    pub(crate) selectable: Vec<String>,
    /// The warning of a deprecated version.
    pub(crate) warning: Option<String>,
    /// Its CRD is being deleted.
    pub(crate) terminating: bool,
}

/// One of the `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Columns above 0 are shown by `-o wide` only.
    pub(crate) priority: i64,
    /// The path of the value, such as `.spec.duration`.
    pub(crate) json_path: String,
}

/// The fields of the scale subresource, as JSON paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The desired replicas: `.spec.replicas`.
    pub(crate) wanted: String,
    /// The current replicas: `.status.replicas`.
    pub(crate) present: String,
    /// A field with the selector as a string; native kinds have a selector object in `.spec.selector`.
    pub(crate) selector: Option<String>,
}

impl Kind {
    /// Creates a kind of which only the names are known.
    pub(crate) fn plain(def: ResourceDef) -> Self {
        let versions =
            def.versions.iter().map(|it| (it.clone(), KindVersion::default())).collect_map();
        Self { def, native: None, versions, storage: Storage::default() }
    }

    /// Returns the kind that a CRD defines; `None` if the CRD is incomplete.
    pub(crate) fn from_crd(crd: &Value) -> Option<Self> {
        definition::kind(crd)
    }

    /// Returns whether `metadata.generation` counts changes.
    pub(crate) fn counts_generations(&self) -> bool {
        self.native.map_or(!self.def.native, |it| it.generations)
    }

    /// Marks objects that were stored under the rules of `before`: if these differ, reading prunes the objects and fills in
    /// defaults.
    pub(crate) fn read_as_stored_by(&mut self, before: &Self) {
        let of = |kind: &Self| kind.versions.get(kind.storage()).cloned().unwrap_or_default();
        let (new, old) = (of(self), of(before));
        if new.raw_schema == old.raw_schema && old.stored.is_none() {
            return;
        }
        for version in self.versions.values_mut() {
            version.stored = version.stored.take().or_else(|| new.schema.clone());
        }
    }

    /// Returns the storage version.
    pub(crate) fn storage(&self) -> &str {
        self.def.versions.first().map(String::as_str).unwrap_or_default()
    }
}

/// A kind in one of its versions.
#[derive(Clone, Debug)]
pub(crate) struct VersionedKind {
    pub(crate) kind: Arc<Kind>,
    /// The group and version: `v1` or `apps/v1`.
    pub(crate) api_version: String,
    /// The version without the group: `v1`.
    pub(crate) version: String,
}

impl VersionedKind {
    pub(crate) fn new(kind: &Arc<Kind>, version: &str) -> Self {
        let api_version = kind.def.api_version(version);
        Self { kind: Arc::clone(kind), api_version, version: version.into() }
    }

    /// Returns the resource that stores the objects: some kinds are second views of others.
    pub(crate) fn resource(&self) -> String {
        let twin = self.kind.native.and_then(|it| it.twin);
        twin.map_or_else(|| self.kind.def.qualified(), |it| it.stored_as.to_owned())
    }

    /// Returns the schema of this version, if it is known.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self.kind.native {
            Some(native) => native::definition(&native.schema_of(&self.version)),
            None => self.kind.versions.get(&self.version)?.schema.as_deref(),
        }
    }

    /// Returns the compiled rules of this version, if it has any.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.kind.versions.get(&self.version)?.rules.as_deref()
    }

    /// Returns whether the status is a subresource.
    pub(crate) fn has_status(&self) -> bool {
        self.kind.def.status_subresource
            && !self.kind.versions.get(&self.version).is_some_and(|it| it.without_status)
    }

    /// Returns the warning of a deprecated version.
    pub(crate) fn warning(&self) -> Option<&str> {
        let own = self.kind.versions.get(&self.version).and_then(|it| it.warning.as_deref());
        own.or(self.kind.native.and_then(|it| it.warning))
    }

    /// Returns the conversion between this version and the storage version of a native kind.
    fn conversion(&self) -> Option<&'static Conversion> {
        self.kind.native?.conversion.filter(|it| it.version == self.version)
    }

    /// Returns whether objects are stored in another form than this view shows.
    pub(crate) fn converts(&self) -> bool {
        self.conversion().is_some()
            || self.kind.native.is_some_and(|it| it.twin.is_some())
            || self.storage_schema().is_some()
    }

    fn storage_schema(&self) -> Option<&Schema> {
        self.kind.versions.get(&self.version)?.stored.as_deref()
    }

    /// Returns the `apiVersion` of an object: without a webhook, it is that of the view. With one, it is that of the stored object,
    /// until [`crate::webhooks::conversion`] has converted it.
    fn api_version_of(&self, object: &Stored) -> Cow<'_, str> {
        let has_webhook = self.kind.storage.webhook.is_some();
        if has_webhook && !object.version().is_empty() && object.version() != self.version {
            return Cow::Owned(self.kind.def.api_version(object.version()));
        }
        Cow::Borrowed(&self.api_version)
    }

    /// Returns the complete object.
    pub(crate) fn tree(&self, object: &Stored) -> Value {
        let kind = &self.kind.def.kind;
        let mut tree = object.tree(&self.api_version_of(object), kind);
        if let Some(conversion) = self.conversion() {
            (conversion.from_stored)(&mut tree);
        }
        if let Some(schema) = self.storage_schema() {
            // A stored object has the fields and defaults of its own version; the conversion adds none.
            schema::prune(schema, &mut tree);
            schema::default(schema, &mut tree);
            if let Some(own) = self.schema() {
                schema::prune(own, &mut tree);
            }
        }
        match self.kind.native.and_then(|it| it.twin) {
            Some(twin) => (twin.from_stored)(tree),
            None => tree,
        }
    }

    /// Converts an object to its stored form.
    pub(crate) fn stored(&self, mut object: Value) -> Value {
        if let Some(conversion) = self.conversion() {
            (conversion.to_stored)(&mut object);
        }
        if let Some(schema) = self.storage_schema() {
            schema::prune(schema, &mut object);
        }
        let Storage { version, webhook } = &self.kind.storage;
        if webhook.is_none() && !version.is_empty() {
            object::put(&mut object, "apiVersion", Some(self.kind.def.api_version(version).into()));
        }
        match self.kind.native.and_then(|it| it.twin) {
            Some(twin) => (twin.to_stored)(object),
            None => object,
        }
    }

    /// Appends the complete object as JSON.
    pub(crate) fn write(&self, text: &mut Vec<u8>, object: &Stored) {
        if self.converts() {
            text.extend_from_slice(self.tree(object).to_string().as_bytes());
        } else {
            let api_version = self.api_version_of(object);
            object.write(text, Some((&api_version, &self.kind.def.kind)));
        }
    }

    /// Returns the complete object as JSON.
    pub(crate) fn text(&self, object: &Stored) -> Vec<u8> {
        let mut text = Vec::with_capacity(object.len() + 128);
        self.write(&mut text, object);
        text
    }
}
