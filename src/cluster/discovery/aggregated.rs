//! Aggregated discovery: `/api` and `/apis` contain the resources of all groups, so no document of a group is read.
//!
//! Servers before 1.26 ignore the media type and return the plain lists of versions and groups.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::document::{DiscoveryDocument, singular};
use crate::logic::object::resource::Resource;

/// The media types of `/api` and `/apis`, in the order of preference.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// The marker of a version whose resources the server could not refresh: they are as of an earlier time, or missing.
const STALE: &str = "Stale";

/// A group with all its resources.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupDiscovery {
    metadata: Metadata,
    /// The preferred version comes first.
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionDiscovery {
    version: String,
    resources: Vec<ResourceDiscovery>,
    freshness: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceDiscovery {
    resource: String,
    response_kind: Option<Kind>,
    scope: String,
    singular_resource: String,
    verbs: Option<BTreeSet<String>>,
    short_names: Option<BTreeSet<String>>,
    categories: Option<BTreeSet<String>>,
    subresources: Option<Vec<Subresource>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Subresource {
    subresource: String,
}

/// A version of a group in the aggregated document.
pub(super) enum AggregatedVersion {
    /// Its resources, which the aggregated document contains.
    Fresh(Vec<Resource>),
    /// Its own document must be read.
    Stale(DiscoveryDocument),
}

impl GroupDiscovery {
    /// Returns the name of the group; empty for the core group.
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns its versions.
    pub(super) fn into_versions(self) -> impl Iterator<Item = AggregatedVersion> {
        let group = self.metadata.name;
        self.versions.into_iter().enumerate().map(move |(number, it)| {
            let document = DiscoveryDocument::new(&group, it.version, number == 0);
            if it.freshness == STALE {
                return AggregatedVersion::Stale(document);
            }
            let resources = it.resources.into_iter().filter_map(|it| it.describe(&document));
            AggregatedVersion::Fresh(resources.collect())
        })
    }
}

impl ResourceDiscovery {
    /// Returns the resource; `None` if the server serves only its subresources.
    fn describe(self, of: &DiscoveryDocument) -> Option<Resource> {
        let kind = self.response_kind?.kind;
        let parts = self.subresources.unwrap_or_default();
        Some(Resource {
            group: of.group.clone(),
            version: of.version.clone(),
            singular: singular(self.singular_resource, &kind),
            plural: self.resource,
            kind,
            shortcuts: self.short_names.unwrap_or_default(),
            categories: self.categories.unwrap_or_default(),
            subresources: parts.into_iter().map(|it| it.subresource).collect(),
            namespaced: self.scope == "Namespaced",
            preferred: of.preferred,
            verbs: self.verbs.unwrap_or_default(),
        })
    }
}
