//! The order of groups, versions and verbs in discovery: clients prefer the first one.

use std::{cmp::Reverse, sync::Arc};

use crate::resource::kind::Kind;
use crate::sorted;

/// The groups of the server itself, by priority; all other groups follow.
const GROUPS: [&str; 21] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "extensions",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// The verbs of native kinds.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The verbs of kinds that CRDs define.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Verbs that are hidden while a CRD is being deleted. All but `create` are still accepted: finalizers are removed by patches.
const UNSHOWN_VERBS: [&str; 3] = ["create", "patch", "update"];

/// Returns all groups but the core group.
pub(super) fn groups(kinds: &[Arc<Kind>]) -> Vec<&str> {
    // Groups with the same priority are sorted by the first of the names that the real server gives to their versions.
    let mut named: Vec<(usize, String, &str)> = Vec::new();
    for def in kinds.iter().map(|it| &it.def).filter(|it| !it.group.is_empty()) {
        let own = GROUPS.iter().position(|it| *it == def.group);
        for version in &def.versions {
            let name = format!("{version}.{}", def.group);
            named.push((own.unwrap_or(GROUPS.len()), name, &def.group));
        }
    }
    sorted::sort(&mut named);
    let mut groups: Vec<&str> = Vec::new();
    for (_, _, group) in named {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Returns the versions of a group, the preferred one first.
pub(super) fn versions<'a>(kinds: &'a [Arc<Kind>], group: &str) -> Vec<&'a str> {
    let defs = kinds.iter().map(|it| &it.def).filter(|it| it.group == group);
    let mut versions: Vec<&str> = defs.flat_map(|it| &it.versions).map(String::as_str).collect();
    sorted::sort_by_key(&mut versions, |it| (Reverse(rank(it)), *it));
    versions.dedup();
    versions
}

/// Returns the rank of a version: stable before beta before alpha, newer before older. Other names come last.
fn rank(version: &str) -> Option<(u8, u32, u32)> {
    let number = |text: &str| if text.starts_with('0') { None } else { text.parse().ok() };
    let rest = version.strip_prefix('v')?;
    let Some((at, _)) = rest.char_indices().find(|(_, it)| !it.is_ascii_digit()) else {
        return Some((2, number(rest)?, 0));
    };
    let (major, rest) = rest.split_at_checked(at)?;
    let (stage, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (None, Some(minor)) => (0, minor),
        (None, None) => return None,
    };
    Some((stage, number(major)?, number(minor)?))
}

/// Returns the verbs of a resource in the order of the real server.
pub(super) fn verbs(kind: &Kind, version: &str) -> Vec<&'static str> {
    let order = if kind.def.native { VERBS } else { CUSTOM_VERBS };
    let is_terminating = kind.versions.get(version).is_some_and(|it| it.terminating);
    let is_shown = |verb: &str| {
        kind.def.verbs.iter().any(|it| it == verb)
            && !(is_terminating && UNSHOWN_VERBS.contains(&verb))
    };
    order.into_iter().filter(|verb| is_shown(verb)).collect()
}
