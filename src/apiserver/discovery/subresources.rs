//! The parts of objects that have endpoints of their own.

use crate::apiserver::resource::kind::Kind;

/// One endpoint below an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subresource<'a> {
    pub(crate) name: &'a str,
    /// What is sent and received there.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) verbs: &'a [&'a str],
}

const WRITABLE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];

/// Of single native kinds: the resource as `plural.group`, the endpoint; an empty group and version are those of the resource.
const SPECIAL: [(&str, Subresource<'static>); 6] = [
    (
        "certificatesigningrequests.certificates.k8s.io",
        part("approval", "", "", "CertificateSigningRequest", WRITABLE),
    ),
    ("namespaces", part("finalize", "", "", "Namespace", &["update"])),
    ("pods", part("binding", "", "", "Binding", CREATE)),
    ("pods", part("eviction", "policy", "v1", "Eviction", CREATE)),
    ("pods", part("log", "", "", "Pod", &["get"])),
    ("serviceaccounts", part("token", "authentication.k8s.io", "v1", "TokenRequest", CREATE)),
];

const fn part(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource<'static> {
    Subresource { name, group, version, kind, verbs }
}

/// What is served below the objects of a kind in one of its versions. Native kinds list it by name, others the status first.
pub(crate) fn subresources<'a>(kind: &'a Kind, version: &'a str) -> Vec<Subresource<'a>> {
    let def = &kind.def;
    let mut parts = Vec::new();
    if def.status_subresource {
        parts.push(Subresource {
            name: "status",
            group: &def.group,
            version,
            kind: &def.kind,
            verbs: WRITABLE,
        });
    }
    if kind.versions.get(version).is_some_and(|it| it.scale.is_some()) {
        parts.push(part("scale", "autoscaling", "v1", "Scale", WRITABLE));
    }
    if def.native {
        let resource = def.qualified();
        let own = SPECIAL.iter().filter(|(name, _)| *name == resource).map(|(_, it)| it);
        parts.extend(own.map(|it| match it.group {
            "" => Subresource { group: &def.group, version, ..it.clone() },
            _ => it.clone(),
        }));
        parts.sort_by_key(|it| it.name);
    }
    parts
}
