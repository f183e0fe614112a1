//! Prevention of privilege escalation: users cannot grant permissions that they do not have, unless a role allows it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    object,
    rbac::{
        Attributes, decide, policy,
        policy::{Permissions, RoleRef, aggregated, listed},
        rule::{PolicyRule, quoted},
    },
    refusal::Refusal,
    verbs::ApiCall,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Refuses a role or a binding that would grant more than the permissions of its writer.
pub(crate) fn check(call: &ApiCall<'_>, old: Option<&Value>, new: &Value) -> Result<(), Refusal> {
    let (shared, user) = (call.shared, &call.request.user);
    let def = &call.view.kind.def;
    if def.group != GROUP || !shared.rbac.is_enabled() || user.is_master() {
        return Ok(());
    }
    let namespace = object::meta(new, "namespace");
    let is_role = matches!(def.plural.as_str(), "roles" | "clusterroles");
    if old.is_some_and(|old| !changes_rights(is_role, old, new)) {
        return Ok(());
    }
    let (verb, plural, name, rules) = if is_role {
        let rules = aggregated(
            new,
            &super::all(&shared.store(), super::CLUSTER_ROLES),
            &mut BTreeSet::new(),
        );
        ("escalate", def.plural.clone(), object::meta(new, "name").to_owned(), Ok(rules))
    } else {
        let role = RoleRef::of(new);
        let rules = policy(shared).rules(&role, namespace).map(<[PolicyRule]>::to_vec);
        let plural = if role.is_cluster { "clusterroles" } else { "roles" };
        ("bind", plural.to_owned(), role.name, rules)
    };
    let permission = Attributes {
        verb: verb.into(),
        group: GROUP.into(),
        resource: plural,
        namespace: namespace.into(),
        name,
        ..Attributes::default()
    };
    if decide(shared, user, &permission).allowed {
        return Ok(());
    }
    let rules = rules.map_err(|_problem| Refusal::not_found(def, &permission.name))?;
    let permissions = policy(shared).permissions(user, namespace);
    let missing = missing(&rules, &permissions.rules);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::forbidden(
        def,
        object::meta(new, "name"),
        &complaint(call, &missing, &permissions),
    ))
}

/// Returns whether a write changes permissions, not only metadata.
fn changes_rights(is_role: bool, old: &Value, new: &Value) -> bool {
    let fields = if is_role { ["rules", "aggregationRule"] } else { ["roleRef", "subjects"] };
    fields.into_iter().any(|it| old.get(it) != new.get(it))
}

fn missing(wanted: &[PolicyRule], permissions: &[PolicyRule]) -> Vec<PolicyRule> {
    let singles = wanted.iter().flat_map(PolicyRule::single);
    singles.filter(|it| !permissions.iter().any(|own| own.covers(it))).collect()
}

fn complaint(call: &ApiCall<'_>, missing: &[PolicyRule], permissions: &Permissions) -> String {
    // Verbs on the same resource are combined into one rule.
    let mut compact: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
    for rule in missing {
        let verbs = compact.entry(PolicyRule { verbs: Vec::new(), ..rule.clone() }).or_default();
        verbs.extend(rule.verbs.iter().cloned());
    }
    let texts: BTreeSet<String> =
        compact.into_iter().map(|(rule, verbs)| PolicyRule { verbs, ..rule }.text()).collect();
    let texts: Vec<String> = texts.into_iter().collect();
    let user = &call.request.user;
    let mut complaint = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        texts.join("\n")
    );
    if !permissions.problems.is_empty() {
        complaint = format!("{complaint}; resolution errors: {}", listed(&permissions.problems));
    }
    complaint
}
