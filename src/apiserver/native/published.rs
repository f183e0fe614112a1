//! The kinds that are compiled into Kubernetes, as public data for checks of scripts.

use serde_json::Value;

use super::{facts, kinds::definition_name};

/// A kind that Kubernetes serves without a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltInKind {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The preferred version, such as `v1`.
    pub version: &'static str,
    /// The kind, such as `Pod`.
    pub kind: &'static str,
    /// The resource, such as `pods`.
    pub plural: &'static str,
    /// The short names, such as `po`.
    pub short_names: &'static [&'static str],
    /// The name of the schema of its objects.
    pub definition: String,
}

/// Returns all kinds that Kubernetes serves without CRDs.
pub fn built_in_kinds() -> Vec<BuiltInKind> {
    let of = |served: &'static facts::NativeResource| {
        let version = *served.versions.first()?;
        Some(BuiltInKind {
            group: served.group,
            version,
            kind: served.kind,
            plural: served.plural,
            short_names: &served.short,
            definition: definition_name(served.group, version, served.kind),
        })
    };
    facts::resources().iter().filter_map(of).collect()
}

/// Returns a schema in its form of OpenAPI v2, by its name, such as `io.k8s.api.core.v1.PodSpec`.
pub fn built_in_definition(name: &str) -> Option<Value> {
    facts::raw_definition(name)
}
