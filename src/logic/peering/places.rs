//! Where peering objects are: the resources of both groups, in the namespaces that are served.

use std::{collections::BTreeSet, sync::Arc};

use crate::logic::resource::Resource;

/// The API groups of peering objects; where a cluster has both, both are used.
pub const GROUPS: [&str; 2] = ["kopf.dev", "zalando.org"];

const VERSION: &str = "v1";

/// A resource, and the namespace of its object; `None`: cluster-wide.
pub type Place = (Resource, Option<Arc<str>>);

/// The kind of peering objects of operators of the whole cluster, or of single namespaces.
pub fn kind(clusterwide: bool) -> &'static str {
    if clusterwide { "ClusterKopfPeering" } else { "KopfPeering" }
}

/// Its plural name.
pub fn plural(clusterwide: bool) -> &'static str {
    if clusterwide { "clusterkopfpeerings" } else { "kopfpeerings" }
}

/// Returns whether this is a resource of peering objects.
pub fn is_peering(resource: &Resource) -> bool {
    GROUPS.contains(&resource.group.as_str())
        && [true, false].map(plural).contains(&resource.plural.as_str())
}

/// The peering resources of a cluster, the usual group first.
pub fn resources(known: &[Resource], clusterwide: bool) -> Vec<&Resource> {
    let of_group = |group: &str| {
        known.iter().find(|it| {
            it.group == group && it.version == VERSION && it.plural == plural(clusterwide)
        })
    };
    GROUPS.into_iter().filter_map(of_group).collect()
}

/// Where to meet others. `namespaces` are those that are served; `None`: the whole cluster.
pub fn places(
    known: &[Resource],
    clusterwide: bool,
    namespaces: Option<&BTreeSet<Arc<str>>>,
) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for resource in resources(known, clusterwide) {
        if resource.namespaced {
            let names = namespaces.into_iter().flatten();
            places.extend(names.map(|it| (resource.clone(), Some(Arc::clone(it)))));
        } else {
            places.insert((resource.clone(), None));
        }
    }
    places
}
