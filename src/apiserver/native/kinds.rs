//! The kinds that are compiled into Kubernetes, from the discovery of a real server.

use super::{
    facts::{self, NativeResource, NativeSubresource},
    rules,
};
use crate::resource::{
    ResourceDef,
    kind::{Kind, KindVersion, Scale, Storage},
};
use crate::sorted::CollectSorted as _;

/// Groups whose Go packages are not `k8s.io/api/FIRST_WORD_OF_GROUP`.
const PACKAGES: [(&str, &str); 3] = [
    ("", "io.k8s.api.core"),
    ("apiextensions.k8s.io", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"),
    ("apiregistration.k8s.io", "io.k8s.kube-aggregator.pkg.apis.apiregistration"),
];

/// Returns all kinds that are compiled into Kubernetes.
pub(crate) fn kinds() -> Vec<Kind> {
    facts::resources().iter().filter_map(kind).collect()
}

/// Returns the subresources of a native resource.
pub(crate) fn subresources(group: &str, plural: &str) -> &'static [NativeSubresource] {
    let mut served = facts::resources().iter();
    served.find(|it| it.group == group && it.plural == plural).map_or(&[], |it| &it.subresources)
}

/// Returns the definition of a kind: `io.k8s.api.apps.v1.Deployment`.
pub(super) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    let package = PACKAGES.iter().find(|(it, _)| *it == group).map(|(_, package)| *package);
    let first = group.split('.').next().unwrap_or_default();
    let package = package.map_or_else(|| format!("io.k8s.api.{first}"), String::from);
    format!("{package}.{version}.{kind}")
}

fn kind(served: &NativeResource) -> Option<Kind> {
    let definition = definition_name(served.group, served.versions.first()?, served.kind);
    let rules = rules::of(&definition)?;
    let texts = |list: &[&str]| list.iter().copied().map(String::from).collect::<Vec<_>>();
    let has = |name: &str| served.subresources.iter().any(|it| it.name == name);
    let scale = has("scale").then(|| Scale {
        wanted: ".spec.replicas".into(),
        present: ".status.replicas".into(),
        selector: None,
    });
    let version = KindVersion { scale, ..KindVersion::default() };
    let versions = served.versions.iter().map(|it| ((*it).into(), version.clone()));
    Some(Kind {
        def: ResourceDef {
            versions: texts(&served.versions),
            short_names: texts(&served.short),
            categories: texts(&served.categories),
            namespaced: served.namespaced,
            status_subresource: has("status"),
            native: true,
            verbs: texts(&served.verbs),
            ..ResourceDef::new(served.group, "v1", served.plural, served.kind)
        },
        native: Some(rules),
        versions: versions.collect_map(),
        storage: Storage::default(),
    })
}
