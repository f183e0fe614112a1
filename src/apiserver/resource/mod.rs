//! The kinds the server knows.

pub(crate) mod definition;
pub(crate) mod kind;

use crate::refusal::join;

/// What clients may do with objects of a resource unless said otherwise.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The resource whose objects define other resources.
pub(crate) const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// One served resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceDef {
    /// Empty for the core group.
    pub group: String,
    /// All served versions; objects are stored in the first one.
    pub versions: Vec<String>,
    /// The name in URLs.
    pub plural: String,
    /// The name in objects.
    pub kind: String,
    /// The lower-cased kind, normally.
    pub singular: String,
    /// As `kubectl` accepts them.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether the status is written through an endpoint of its own, and only there.
    pub status_subresource: bool,
    /// Compiled into Kubernetes rather than defined by a CRD: no generations, and the items of lists do not repeat their kind.
    pub native: bool,
    /// Advertised in the discovery; other requests are refused.
    pub verbs: Vec<String>,
}

impl ResourceDef {
    /// A namespaced custom resource of one version, without a status subresource.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.into(),
            versions: vec![version.into()],
            plural: plural.into(),
            kind: kind.into(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            status_subresource: false,
            native: false,
            verbs: VERBS.map(String::from).into(),
        }
    }

    /// `plural.group`, or the plural alone in the core group: unique among resources.
    pub fn qualified(&self) -> String {
        join(&self.plural, &self.group)
    }

    /// Where the real server keeps the objects in its database, as its errors tell. Native kinds have no group there, and some
    /// have their first name.
    pub(crate) fn storage_prefix(&self) -> String {
        if !self.native || self.group == "apiextensions.k8s.io" {
            return format!("{}/{}", self.group, self.plural);
        }
        match self.plural.as_str() {
            "endpoints" => "services/endpoints",
            "ingresses" => "ingress",
            "nodes" => "minions",
            "replicationcontrollers" => "controllers",
            "services" => "services/specs",
            other => other,
        }
        .to_owned()
    }

    /// The `apiVersion` of its objects as seen through one of its versions.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.into() } else { format!("{}/{version}", self.group) }
    }
}
