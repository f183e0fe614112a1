//! The resources and kinds that the server serves.

pub(crate) mod definition;
pub(crate) mod kind;

use crate::refusal::join;

/// The default verbs of a resource.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The resource of CRDs.
pub(crate) const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The names and properties of a served resource.
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
    /// Usually the kind in lower case.
    pub singular: String,
    /// Abbreviations that `kubectl` accepts.
    pub short_names: Vec<String>,
    /// Groups of resources that `kubectl` accepts, such as `all`.
    pub categories: Vec<String>,
    /// Objects are in namespaces.
    pub namespaced: bool,
    /// The status is a subresource: other writes do not change it.
    pub status_subresource: bool,
    /// Compiled into Kubernetes, not defined by a CRD: without generations, and items of lists do not repeat their kind.
    pub native: bool,
    /// The verbs in discovery; other requests are refused.
    pub verbs: Vec<String>,
}

impl ResourceDef {
    /// Creates a namespaced custom resource with one version, and without a status subresource.
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

    /// Returns the unique name: `plural.group`, or the plural alone in the core group.
    pub fn qualified(&self) -> String {
        join(&self.plural, &self.group)
    }

    /// Returns the prefix of keys in the database of the real server, which its errors show. Native kinds have no group there, and
    /// some have their first name.
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

    /// Returns the `apiVersion` of its objects in one of its versions.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.into() } else { format!("{}/{version}", self.group) }
    }
}
