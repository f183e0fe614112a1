//! Permissions with their reasons, as rules of roles.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Verbs in their usual order.
const VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The scope of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum PermissionScope {
    /// In the whole cluster.
    Cluster,
    /// In each namespace that the operator serves.
    Served,
    /// In the operator's own namespace.
    Own,
}

/// Some verbs of one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct PermissionTarget {
    pub(in crate::cli) place: PermissionScope,
    pub(in crate::cli) group: String,
    /// The plural, with `/SUBRESOURCE` if any.
    pub(in crate::cli) resource: String,
}

/// The verbs of one target, and the reasons for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Grounds {
    pub(in crate::cli) verbs: BTreeSet<usize>,
    others: BTreeSet<String>,
    pub(in crate::cli) reasons: BTreeSet<String>,
}

/// The permissions that an operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Permissions(BTreeMap<PermissionTarget, Grounds>);

/// The common parts of the resources of one rule: their group, verbs and reasons.
type RuleKey<'a> = (&'a str, Vec<&'a str>, &'a BTreeSet<String>);

/// A rule of a role, and the reasons for it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct RoleRule {
    pub(in crate::cli) reasons: BTreeSet<String>,
    pub(in crate::cli) rule: Value,
}

impl PermissionTarget {
    pub(in crate::cli) fn new(place: PermissionScope, group: &str, resource: &str) -> Self {
        PermissionTarget { place, group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl Grounds {
    fn add(&mut self, verb: &str) {
        match VERBS.iter().position(|it| *it == verb) {
            Some(known) => drop(self.verbs.insert(known)),
            None => drop(self.others.insert(verb.to_owned())),
        }
    }

    /// Returns the verbs in their usual order.
    pub(in crate::cli) fn verbs(&self) -> Vec<&str> {
        let known = self.verbs.iter().filter_map(|it| VERBS.get(*it).copied());
        known.chain(self.others.iter().map(String::as_str)).collect()
    }
}

impl Permissions {
    /// Adds verbs of a target.
    pub(in crate::cli) fn add(&mut self, target: PermissionTarget, verbs: &[&str], reason: &str) {
        let grounds = self.0.entry(target).or_default();
        for verb in verbs {
            grounds.add(verb);
        }
        grounds.reasons.insert(reason.to_owned());
    }

    /// Returns all targets with their verbs.
    pub(in crate::cli) fn iter(&self) -> impl Iterator<Item = (&PermissionTarget, &Grounds)> {
        self.0.iter()
    }

    /// Returns the rules for some places. Resources of one group with the same verbs and reasons share a rule.
    pub(in crate::cli) fn rules(&self, places: &[PermissionScope]) -> Vec<RoleRule> {
        let mut all: BTreeMap<(&str, &str), Grounds> = BTreeMap::new();
        for (target, grounds) in self.0.iter().filter(|it| places.contains(&it.0.place)) {
            let sum = all.entry((&target.group, &target.resource)).or_default();
            sum.verbs.extend(&grounds.verbs);
            sum.others.extend(grounds.others.iter().cloned());
            sum.reasons.extend(grounds.reasons.iter().cloned());
        }
        let mut rules: BTreeMap<RuleKey<'_>, Vec<&str>> = BTreeMap::new();
        for ((group, resource), grounds) in &all {
            let key = (*group, grounds.verbs(), &grounds.reasons);
            rules.entry(key).or_default().push(resource);
        }
        let rules = rules.into_iter().map(|((group, verbs, reasons), resources)| RoleRule {
            reasons: reasons.clone(),
            rule: json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }),
        });
        rules.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_with_the_same_verbs_and_reasons_share_a_rule() {
        let mut all = Permissions::default();
        for resource in ["sites", "sites/status"] {
            all.add(
                PermissionTarget::new(PermissionScope::Served, "x.io", resource),
                &["patch"],
                "on_create",
            );
        }
        all.add(
            PermissionTarget::new(PermissionScope::Served, "", "pods"),
            &["watch", "impersonate", "list"],
            "index",
        );
        all.add(
            PermissionTarget::new(PermissionScope::Own, "", "secrets"),
            &["get"],
            "certificates",
        );
        let rules: Vec<_> =
            all.rules(&[PermissionScope::Served]).into_iter().map(|it| it.rule).collect();
        let expected = [
            json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "impersonate"] }),
            json!({ "apiGroups": ["x.io"], "resources": ["sites", "sites/status"], "verbs": ["patch"] }),
        ];
        assert_eq!(rules, expected);
    }
}
