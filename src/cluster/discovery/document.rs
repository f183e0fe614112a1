//! One document of the discovery: a version of a group.

/// One document to read.
pub(super) struct DiscoveryDocument {
    pub(super) path: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) preferred: bool,
}

impl DiscoveryDocument {
    pub(super) fn new(group: &str, version: String, preferred: bool) -> Self {
        let path = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        DiscoveryDocument { path, group: group.to_owned(), version, preferred }
    }
}

/// Returns the singular name; servers may omit it.
pub(super) fn singular(name: String, kind: &str) -> String {
    if name.is_empty() { kind.to_lowercase() } else { name }
}
