//! The storages of state on objects, with their names and defaults.

use std::{fmt, sync::Arc};

use super::names::{FieldPath, PREFIX};

/// The storage of the progress of handlers on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressStorage {
    /// In annotations of the object.
    Annotations(AnnotationsProgress),
    /// In the status of the object.
    Status(StatusProgress),
    /// In all of these; read from the first that has it.
    Multi(Vec<ProgressStorage>),
    /// Written to annotations; read and purged in the status as well, for objects of older operators.
    Smart(AnnotationsProgress, StatusProgress),
}

/// The options of progress in annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationsProgress {
    /// The part of the annotation names before the slash.
    pub prefix: String,
    /// Also write null fields.
    pub verbose: bool,
    /// The record key of the annotation that triggers a new event.
    pub touch_key: String,
    /// Also write and read the shorter names of old versions.
    pub v1: bool,
}

/// Progress in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusProgress {
    /// The field that maps handler ids to records.
    pub field: FieldPath,
    /// The field that triggers a new event.
    pub touch_field: FieldPath,
}

/// The storage of the last handled essence on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum DiffBaseStorage {
    /// In an annotation of the object.
    Annotations(AnnotationsDiffBase),
    /// In the status of the object.
    Status(StatusDiffBase),
    /// In all of these; read from the first that has it.
    Multi(Vec<DiffBaseStorage>),
}

/// The last handled essence in an annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationsDiffBase {
    /// The part of the annotation name before the slash.
    pub prefix: String,
    /// The record key.
    pub key: String,
    /// Fields whose changes are ignored.
    pub ignored_fields: Vec<FieldPath>,
    /// Also write and read the shorter name of old versions.
    pub v1: bool,
}

/// The last handled essence in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusDiffBase {
    /// The field that contains the JSON.
    pub field: FieldPath,
    /// Fields whose changes are ignored.
    pub ignored_fields: Vec<FieldPath>,
}

/// The fields of one resource whose values are neither stored nor logged. Not a setting: it follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenFields {
    /// The fields. None is part of another one.
    pub paths: Vec<FieldPath>,
    /// The key of the digests; `None`: the uid of each object, which is not a secret.
    pub key: Option<Arc<DigestKey>>,
}

/// The key of digests. It is never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct DigestKey {
    bytes: Vec<u8>,
    name: String,
}

impl DigestKey {
    /// Creates a key. Its name, which is stored with each digest, reveals nothing about it.
    pub fn new(bytes: Vec<u8>, name: &str) -> Self {
        DigestKey { bytes, name: name.to_owned() }
    }

    /// Returns the key itself, which must not be logged.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the name of the key, which is stored with each digest.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Default for ProgressStorage {
    fn default() -> Self {
        ProgressStorage::Smart(AnnotationsProgress::default(), StatusProgress::default())
    }
}

impl Default for DiffBaseStorage {
    fn default() -> Self {
        DiffBaseStorage::Annotations(AnnotationsDiffBase::default())
    }
}

impl Default for AnnotationsProgress {
    fn default() -> Self {
        AnnotationsProgress {
            prefix: PREFIX.into(),
            verbose: false,
            touch_key: "touch-dummy".into(),
            v1: true,
        }
    }
}

impl Default for StatusProgress {
    fn default() -> Self {
        let path = |last: &str| vec!["status".into(), "kopf".into(), last.into()];
        StatusProgress { field: path("progress"), touch_field: path("dummy") }
    }
}

impl Default for AnnotationsDiffBase {
    fn default() -> Self {
        AnnotationsDiffBase {
            prefix: PREFIX.into(),
            key: "last-handled-configuration".into(),
            ignored_fields: Vec::new(),
            v1: true,
        }
    }
}

impl Default for StatusDiffBase {
    fn default() -> Self {
        StatusDiffBase {
            field: vec!["status".into(), "kopf".into(), "last-handled-configuration".into()],
            ignored_fields: Vec::new(),
        }
    }
}
