//! A served kind with everything the server knows of it.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

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
    /// Of kinds that are compiled into Kubernetes.
    pub(crate) native: Option<&'static Native>,
    /// By name; the same names as in `def.versions`.
    pub(crate) versions: BTreeMap<String, Version>,
    /// How custom objects are stored.
    pub(crate) storage: Storage,
}

/// How objects of a CRD are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// The version that objects are stored in; empty for other kinds.
    pub(crate) version: String,
    /// The `clientConfig` of the conversion webhook; `None`: all versions have the same fields.
    pub(crate) webhook: Option<Arc<Value>>,
}

/// What differs between the versions of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// `None`: nothing is known, everything is accepted.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The JSON schema as the CRD has it.
    pub(crate) raw_schema: Option<Arc<Value>>,
    /// What objects are checked with.
    pub(crate) rules: Option<Arc<Rules>>,
    /// Of `kubectl get`, as the CRD has them.
    pub(crate) columns: Vec<Column>,
    pub(crate) scale: Option<Scale>,
    /// Whether it has no status endpoint although other versions have one.
    pub(crate) without_status: bool,
    /// The schema of the version that objects are stored in, if not all versions have the same.
    pub(crate) stored: Option<Arc<Schema>>,
    /// Fields beside the name and the namespace that lists can be narrowed by: `spec.size`.
    pub(crate) selectable: Vec<String>,
    /// What clients of a deprecated version are told.
    pub(crate) warning: Option<String>,
    /// Whether its CRD is being deleted.
    pub(crate) terminating: bool,
}

/// `additionalPrinterColumns`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Above 0: shown by `-o wide` only.
    pub(crate) priority: i64,
    /// Such as `.spec.duration`.
    pub(crate) json_path: String,
}

/// Where the numbers of the scale subresource are, as JSON paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// `.spec.replicas`
    pub(crate) wanted: String,
    /// `.status.replicas`
    pub(crate) present: String,
    /// A field with the selector as text; native kinds have a selector object in `.spec.selector`.
    pub(crate) selector: Option<String>,
}

impl Kind {
    /// A resource of which nothing but the names is known.
    pub(crate) fn plain(def: ResourceDef) -> Self {
        let versions = def.versions.iter().map(|it| (it.clone(), Version::default())).collect();
        Self { def, native: None, versions, storage: Storage::default() }
    }

    /// What a `CustomResourceDefinition` defines; nothing if it is not complete.
    pub(crate) fn from_crd(crd: &Value) -> Option<Self> {
        definition::kind(crd)
    }

    /// Whether changes are counted in `metadata.generation`.
    pub(crate) fn counts_generations(&self) -> bool {
        self.native.map_or(!self.def.native, |it| it.generations)
    }

    /// Objects that are there already were stored under the rules of `before`: if those are others, reading prunes them and fills in
    /// the defaults.
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

    /// The version that objects are stored in.
    pub(crate) fn storage(&self) -> &str {
        self.def.versions.first().map(String::as_str).unwrap_or_default()
    }
}

/// A kind as seen through one of its versions.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) kind: Arc<Kind>,
    /// `v1` or `apps/v1`
    pub(crate) api_version: String,
    /// `v1`
    pub(crate) version: String,
}

impl View {
    pub(crate) fn new(kind: &Arc<Kind>, version: &str) -> Self {
        let api_version = kind.def.api_version(version);
        Self { kind: Arc::clone(kind), api_version, version: version.into() }
    }

    /// The resource whose objects these are: some kinds are second views of others.
    pub(crate) fn resource(&self) -> String {
        let twin = self.kind.native.and_then(|it| it.twin);
        twin.map_or_else(|| self.kind.def.qualified(), |it| it.stored_as.to_owned())
    }

    /// The schema of this version, if one is known.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self.kind.native {
            Some(native) => native::definition(&native.schema_of(&self.version)),
            None => self.kind.versions.get(&self.version)?.schema.as_deref(),
        }
    }

    /// The rules of this version, if there are any.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.kind.versions.get(&self.version)?.rules.as_deref()
    }

    /// Whether the status is written through an endpoint of its own.
    pub(crate) fn has_status(&self) -> bool {
        self.kind.def.status_subresource
            && !self.kind.versions.get(&self.version).is_some_and(|it| it.without_status)
    }

    /// What clients of a deprecated version are told.
    pub(crate) fn warning(&self) -> Option<&str> {
        let own = self.kind.versions.get(&self.version).and_then(|it| it.warning.as_deref());
        own.or(self.kind.native.and_then(|it| it.warning))
    }

    /// How objects are translated from and to the stored version of a native kind.
    fn conversion(&self) -> Option<&'static Conversion> {
        self.kind.native?.conversion.filter(|it| it.version == self.version)
    }

    /// Whether objects are kept in another shape than they are shown in.
    pub(crate) fn converts(&self) -> bool {
        self.conversion().is_some()
            || self.kind.native.is_some_and(|it| it.twin.is_some())
            || self.storage_schema().is_some()
    }

    fn storage_schema(&self) -> Option<&Schema> {
        self.kind.versions.get(&self.version)?.stored.as_deref()
    }

    /// The `apiVersion` of an object: without conversion, it is that of the view. With a webhook, it is that of the stored object,
    /// until [`crate::webhooks::conversion`] has converted it.
    fn api_version_of(&self, object: &Stored) -> Cow<'_, str> {
        let has_webhook = self.kind.storage.webhook.is_some();
        if has_webhook && !object.version().is_empty() && object.version() != self.version {
            return Cow::Owned(self.kind.def.api_version(object.version()));
        }
        Cow::Borrowed(&self.api_version)
    }

    /// The whole object.
    pub(crate) fn tree(&self, object: &Stored) -> Value {
        let kind = &self.kind.def.kind;
        let mut tree = object.tree(&self.api_version_of(object), kind);
        if let Some(conversion) = self.conversion() {
            (conversion.from_stored)(&mut tree);
        }
        if let Some(schema) = self.storage_schema() {
            // What is stored has the fields and the defaults of its own version; conversion adds nothing.
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

    /// The object in the shape that it is kept in.
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

    /// Appends the whole object as JSON text.
    pub(crate) fn write(&self, text: &mut Vec<u8>, object: &Stored) {
        if self.converts() {
            text.extend_from_slice(self.tree(object).to_string().as_bytes());
        } else {
            let api_version = self.api_version_of(object);
            object.write(text, Some((&api_version, &self.kind.def.kind)));
        }
    }

    /// The whole object as JSON text.
    pub(crate) fn text(&self, object: &Stored) -> Vec<u8> {
        let mut text = Vec::with_capacity(object.len() + 128);
        self.write(&mut text, object);
        text
    }
}
