//! A served kind with everything the server knows of it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::apiserver::{native::Native, resource::ResourceDef, schema::Schema};

/// A resource, its versions, and its rules.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) def: ResourceDef,
    /// Of kinds that are compiled into Kubernetes.
    pub(crate) native: Option<&'static Native>,
    /// By name; the same names as in `def.versions`.
    pub(crate) versions: BTreeMap<String, Version>,
}

/// What differs between the versions of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// `None`: nothing is known, everything is accepted.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The JSON schema as the CRD has it.
    pub(crate) raw_schema: Option<Arc<Value>>,
    /// Of `kubectl get`, as the CRD has them.
    pub(crate) columns: Vec<Column>,
    pub(crate) scale: Option<Scale>,
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
