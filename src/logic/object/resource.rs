//! A kind served by the API: its description in discovery, and its URLs.
//!
//! The contract is `tests/vectors/resource-urls.json`.

use std::{collections::BTreeSet, fmt};

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
    /// Short names.
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

/// The target of a request within a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<&'a str>,
    /// `None`: the collection.
    pub name: Option<&'a str>,
    /// Such as `status`.
    pub subresource: Option<&'a str>,
}

/// A place that has no URL: a mistake of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// A subresource without the name of its object.
    SubresourceOfCollection,
    /// A namespace for a cluster-scoped resource.
    NamespaceOfClusterScoped,
    /// An object of a namespaced resource without its namespace.
    NamespaceMissing,
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

    /// Returns the path and query of a request.
    pub fn url(&self, place: Place<'_>, query: &[(&str, &str)]) -> Result<String, PlaceError> {
        if place.subresource.is_some() && place.name.is_none() {
            return Err(PlaceError::SubresourceOfCollection);
        }
        match (self.namespaced, place.namespace, place.name) {
            (false, Some(_), _) => return Err(PlaceError::NamespaceOfClusterScoped),
            (true, None, Some(_)) => return Err(PlaceError::NamespaceMissing),
            (true, None, None) | (true, Some(_), _) | (false, None, _) => {}
        }
        let is_legacy = self.group.is_empty() && self.version == "v1";
        let parts = [
            if is_legacy { "api" } else { "apis" },
            &self.group,
            &self.version,
            if place.namespace.is_some() { "namespaces" } else { "" },
            place.namespace.unwrap_or_default(),
            &self.plural,
            place.name.unwrap_or_default(),
            place.subresource.unwrap_or_default(),
        ];
        let mut url = String::new();
        for part in parts.into_iter().filter(|it| !it.is_empty()) {
            url.push('/');
            url.push_str(part);
        }
        for (index, (key, value)) in query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(&form_encoded(key));
            url.push('=');
            url.push_str(&form_encoded(value));
        }
        Ok(url)
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

    fn identity(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.plural)
    }
}

/// Encodes a text as browsers encode forms.
fn form_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => encoded.push('+'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.extend(format!("%{byte:02X}").chars());
            }
        }
    }
    encoded
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlaceError::SubresourceOfCollection => "a subresource needs the name of its object",
            PlaceError::NamespaceOfClusterScoped => "a cluster-scoped resource has no namespaces",
            PlaceError::NamespaceMissing => {
                "an object of a namespaced resource needs its namespace"
            }
        })
    }
}

impl std::error::Error for PlaceError {}

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
