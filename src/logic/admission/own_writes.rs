//! Finds webhooks that review the operator's own writes: while such a webhook is unreachable, the operator cannot start again.

use crate::logic::{
    handlers::handler::{Category, Handler},
    object::resource::Resource,
};

/// The resources that an operator writes besides the objects of its handlers: group, version, plural, kind, and what for.
const WRITTEN: [(&str, &str, &str, &str, &str); 4] = [
    ("coordination.k8s.io", "v1", "leases", "Lease", "for the election of its leader"),
    ("", "v1", "secrets", "Secret", "for the certificates of its webhooks"),
    ("", "v1", "events", "Event", "about objects"),
    ("kopf.dev", "v1", "clusterkopfpeerings", "ClusterKopfPeering", "for peering"),
];

/// Returns the operator's own writes that this handler reviews, in words such as `leases, for the election of its leader`.
///
/// A handler that is restricted to some namespaces or objects counts as restricted enough.
pub fn reviewed(handler: &Handler) -> Option<String> {
    let options = &handler.admission;
    let is_restricted = options.namespace_selector.is_some()
        || options.match_conditions.is_some()
        || options.subresource.as_deref().is_some_and(|it| it != "*")
        || !handler.filters.labels.is_empty();
    let is_written = |it: &String| it == "CREATE" || it == "UPDATE";
    let writes = options.operations.is_empty() || options.operations.iter().any(is_written);
    let is_admission = handler.kind.category() == Category::Admission;
    if !is_admission || is_restricted || !writes || options.ignore_failures {
        return None;
    }
    let selector = handler.selector.as_ref()?;
    let is_selected = |(group, version, plural, kind, _): &&(&str, &str, &str, &str, &str)| {
        let resource = Resource {
            group: (*group).into(),
            version: (*version).into(),
            plural: (*plural).into(),
            kind: (*kind).into(),
            singular: kind.to_lowercase(),
            preferred: true,
            ..Resource::default()
        };
        selector.check(&resource, &|_, _| false)
    };
    let (_, _, plural, _, purpose) = WRITTEN.iter().find(is_selected)?;
    Some(format!("{plural}, {purpose}"))
}
