//! A kind served by the API: what discovery knows about it, and its URLs.
//!
//! The contract is `tests/vectors/resource-urls.json`.

use std::{collections::BTreeSet, fmt};

/// A discovered resource. Equality and order look at group, version and plural only.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The name in URLs.
    pub plural: String,
    /// The kind, as objects name it.
    pub kind: String,
    /// The lower-case singular; never empty.
    pub singular: String,
    /// Short names.
    pub shortcuts: BTreeSet<String>,
    /// Categories such as `all`.
    pub categories: BTreeSet<String>,
    /// Names of subresources, such as `status` and `scale`.
    pub subresources: BTreeSet<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether this version is the preferred one of its group.
    pub preferred: bool,
    /// What the API allows, such as `list`, `watch`, `patch`.
    pub verbs: BTreeSet<String>,
}

impl Resource {
    /// `group/version`, or `version` in the core group: the `apiVersion` of objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    fn identity(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.plural)
    }
}

impl fmt::Display for Resource {
    /// `plural.version.group`, as users write selectors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, version, plural) = self.identity();
        let (name, subresource) =
            plural.split_once('/').map_or((plural, ""), |(name, sub)| (name, sub));
        let text = format!("{name}.{version}.{group}");
        f.write_str(text.trim_matches('.'))?;
        if subresource.is_empty() { Ok(()) } else { write!(f, "/{subresource}") }
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Resource {}

impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Resource {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.identity().cmp(&other.identity())
    }
}
