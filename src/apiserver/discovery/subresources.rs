//! Subresources: the endpoints below single objects.

use crate::sorted;
use crate::{native, resource::kind::Kind};

/// One endpoint below an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SubresourceEndpoint<'a> {
    pub(crate) name: &'a str,
    /// The group of the bodies that are sent and received there.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) verbs: &'a [&'a str],
}

const WRITABLE: &[&str] = &["get", "patch", "update"];

/// Returns the subresources of a kind in one version. Those of native kinds are sorted by name, others begin with the status.
pub(crate) fn subresources<'a>(kind: &'a Kind, version: &'a str) -> Vec<SubresourceEndpoint<'a>> {
    let def = &kind.def;
    let own = native::kinds::subresources(&def.group, &def.plural);
    if def.native && !own.is_empty() {
        let mut parts: Vec<SubresourceEndpoint<'a>> = own
            .iter()
            .map(|it| SubresourceEndpoint {
                name: it.name,
                group: if it.version.is_empty() { &def.group } else { it.group },
                version: if it.version.is_empty() { version } else { it.version },
                kind: if it.kind.is_empty() { &def.kind } else { it.kind },
                verbs: &it.verbs,
            })
            .collect();
        sorted::sort_by_key(&mut parts, |it| it.name);
        return parts;
    }
    let own = kind.versions.get(version);
    let status = def.status_subresource && !own.is_some_and(|it| it.without_status);
    let status = status.then_some(("status", def.group.as_str(), version));
    let scale = own.is_some_and(|it| it.scale.is_some());
    let scale = scale.then_some(("scale", "autoscaling", "v1"));
    let parts = [status, scale].into_iter().flatten();
    let part = |(name, group, version)| {
        let kind = if name == "scale" { "Scale" } else { def.kind.as_str() };
        SubresourceEndpoint { name, group, version, kind, verbs: WRITABLE }
    };
    parts.map(part).collect()
}
