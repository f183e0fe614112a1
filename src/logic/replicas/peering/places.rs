//! The locations of peering objects: the resources of both API groups, in the namespaces that are served.

use std::{collections::BTreeSet, sync::Arc};

use crate::logic::object::resource::Resource;

/// The API groups of peering objects; if a cluster has both, both are used.
pub const GROUPS: [&str; 2] = ["kopf.dev", "zalando.org"];

const VERSION: &str = "v1";

/// A resource, and the namespace of its object; `None`: cluster-wide.
pub type PeeringScope = (Resource, Option<Arc<str>>);

/// Returns the kind of peering objects: cluster-wide, or of single namespaces.
pub fn kind(clusterwide: bool) -> &'static str {
    if clusterwide { "ClusterKopfPeering" } else { "KopfPeering" }
}

/// Returns the plural name of the kind.
pub fn plural(clusterwide: bool) -> &'static str {
    if clusterwide { "clusterkopfpeerings" } else { "kopfpeerings" }
}

/// Returns whether this is a resource of peering objects.
pub fn is_peering(resource: &Resource) -> bool {
    GROUPS.contains(&resource.group.as_str())
        && [true, false].map(plural).contains(&resource.plural.as_str())
}

/// Returns the peering resources of a cluster, those of the default group first.
pub fn resources(known: &[Resource], clusterwide: bool) -> Vec<&Resource> {
    let of_group = |group: &str| {
        known.iter().find(|it| {
            it.group == group && it.version == VERSION && it.plural == plural(clusterwide)
        })
    };
    GROUPS.into_iter().filter_map(of_group).collect()
}

/// Returns the locations of the peering objects. `namespaces` are those that are served; `None`: the whole cluster.
pub fn places(
    known: &[Resource],
    clusterwide: bool,
    namespaces: Option<&BTreeSet<Arc<str>>>,
) -> BTreeSet<PeeringScope> {
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
