//! A kind served by the API: its description in discovery.

use std::{collections::BTreeSet, fmt};

use super::{Header, ObjectRef};

/// A discovered resource. Equality and order compare group, version and plural only.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The name in URLs.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// The lower-case singular; never empty.
    pub singular: String,
    /// Short names, as kubectl accepts them.
    pub shortcuts: BTreeSet<String>,
    /// Categories such as `all`.
    pub categories: BTreeSet<String>,
    /// Names of subresources, such as `status` and `scale`.
    pub subresources: BTreeSet<String>,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Whether this version is the preferred one of its group.
    pub preferred: bool,
    /// The verbs that the API allows, such as `list`, `watch`, `patch`.
    pub verbs: BTreeSet<String>,
}

impl Resource {
    /// Returns the resource of Secrets.
    pub fn secrets() -> Self {
        Resource {
            version: "v1".into(),
            plural: "secrets".into(),
            singular: "secret".into(),
            kind: "Secret".into(),
            namespaced: true,
            preferred: true,
            ..Resource::default()
        }
    }

    /// Returns `group/version`, or `version` in the core group: the `apiVersion` of objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns whether both have the same description, not only the same identity.
    pub fn is_described_as(&self, other: &Resource) -> bool {
        let Resource {
            group,
            version,
            plural,
            kind,
            singular,
            shortcuts,
            categories,
            subresources,
            namespaced,
            preferred,
            verbs,
        } = self;
        (group, version, plural, kind, singular)
            == (&other.group, &other.version, &other.plural, &other.kind, &other.singular)
            && (shortcuts, categories, subresources, verbs)
                == (&other.shortcuts, &other.categories, &other.subresources, &other.verbs)
            && (*namespaced, *preferred) == (other.namespaced, other.preferred)
    }

    /// Returns the identity of an object of this resource: items of lists may lack their kind.
    pub fn reference_to(&self, header: &Header) -> ObjectRef {
        let mut reference = header.reference();
        if reference.kind.is_empty() {
            reference.kind.clone_from(&self.kind);
        }
        if reference.api_version.is_empty() {
            reference.api_version = self.api_version();
        }
        reference
    }

    fn identity(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.plural)
    }
}

impl fmt::Display for Resource {
    /// Formats `plural.version.group`, as users write selectors.
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
